"""Elements at other places: in another layout of memory, of channels as pixels, on a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protocol.capture.expansion.table import aten, expands, expands_as_torch

Sizes = Sequence[int]

expands_as_torch(
    *(aten.pixel_shuffle.default, aten.pixel_unshuffle.default, aten.channel_shuffle.default),
    aten.diag_embed.default,
)


@expands(aten.as_strided.default)
def as_strided(x: Tensor, size: Sizes, stride: Sizes, offset: int | None = None) -> Tensor:
    """All elements in the order of memory, at their axes' places; only of those that lie side by side."""
    _require_same_beginning(x, offset)
    elements = x.permute(_from_slowest(x.shape, x.stride())).reshape(-1)
    return _placed(elements, size, stride)


@expands(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sizes, stride: Sizes, offset: int | None = None
) -> Tensor:
    """The elements of `source` in the place of all elements; only where they lie side by side."""
    _require_same_beginning(x, offset)
    elements = source.permute(_from_slowest(size, stride)).reshape(-1)
    return _placed(elements, x.shape, x.stride())


def _placed(elements: Tensor, size: Sizes, stride: Sizes) -> Tensor:
    """Elements in the order of memory as a tensor of a layout."""
    order = _from_slowest(size, stride)
    return elements.view([size[k] for k in order]).permute([order.index(k) for k in range(len(size))])


def _from_slowest(size: Sizes, stride: Sizes) -> list[int]:
    """The axes of a layout in which elements lie side by side, from the slowest; raises for another layout."""
    order = sorted(range(len(size)), key=lambda k: (size[k] > 1, stride[k]), reverse=True)
    expected = 1
    for k in reversed(order):
        if size[k] > 1 and stride[k] != expected:
            raise ValueError(f"strides {tuple(stride)} of {tuple(size)}")
        expected *= size[k]
    return order


def _require_same_beginning(x: Tensor, offset: int | None) -> None:
    if offset is not None and offset != x.storage_offset():
        raise ValueError(f"an offset of {offset} elements")
