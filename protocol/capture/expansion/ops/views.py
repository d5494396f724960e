"""Views of memory that are views of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protocol.capture.expansion.table import aten, expands


@expands(aten.as_strided.default)
def as_strided(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Tensor:
    """The tensor itself, of which only the strides of axes of one element are others, as pooling writes them."""
    _require_same(x, shape, strides, offset)
    return x.view(shape)


@expands(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, part: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Tensor:
    """All of the tensor replaced."""
    _require_same(x, shape, strides, offset)
    return part.clone()


def _require_same(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None) -> None:
    """Raises `ValueError` where a view of memory has other elements than x, or at other places: it stays refused."""
    own = zip(x.shape, x.stride(), strides)
    same = all(size == 1 or ours == theirs for size, ours, theirs in own)
    if list(x.shape) != list(shape) or offset or not same:
        raise ValueError("another view of the memory")
