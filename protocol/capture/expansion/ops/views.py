"""Views of memory that are views of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from protocol.capture.expansion.table import aten, expands


@expands(aten.as_strided.default)
def as_strided(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Tensor:
    """All elements in order, under another shape, as pooling writes them; any other view of memory is refused."""
    _require_all_in_order(x, shape, strides, offset)
    return x.view(shape)


@expands(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, part: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Tensor:
    """All elements replaced, in order; a write into any other view of memory is refused."""
    _require_all_in_order(x, shape, strides, offset)
    return part.reshape(x.shape)


def _require_all_in_order(
    x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None
) -> None:
    """Raises `ValueError`, so that nothing is expanded, where a view is not of all elements of x in their order."""
    dense, step = x.is_contiguous() and x.numel() == math.prod(shape), 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        dense = dense and (size == 1 or stride == step)
        step *= size
    if not dense or offset:
        raise ValueError("another view of the memory")
