"""Images resampled to another size or grid, as torch decomposes them, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.fx import Node

from protocol.capture.expansion.table import EXPANSIONS, aten, expands, expands_as_torch, gradient, gradients

CUBIC = 2
BORDER, REFLECTION = 1, 2
"""torch's numbers for two kinds of padding. `CUBIC` is torch's number for cubic interpolation."""


def _is_uneven(node: Node) -> bool:
    """Whether a nearest-neighbour resizing, or its gradient, scales an axis by a factor that is not an
    integer. The factor may be given in addition to the sizes, such as 3.2 for a resizing from 4 to 12.
    """
    (before, after) = (node.args[0].meta["val"].shape[2:], node.meta["val"].shape[2:])  # type: ignore[union-attr]
    small, large = (after, before) if "backward" in str(node.target) else (before, after)
    if any(b % a for a, b in zip(small, large)):
        return True
    given: Any = node.args[3 if "backward" in str(node.target) else 2 :]
    factors = given[0] if given and isinstance(given[0], list | tuple) else given
    return any(factor and a * factor != b for a, b, factor in zip(small, large, factors or ()))


def _resizing(forward: OpOverload, backward: OpOverload, where: Callable[[Node], bool] | None = None) -> None:
    """Register the expansions of `forward`, a resizing, and of `backward`, its gradient."""
    expands_as_torch(forward, where=where)
    resized = EXPANSIONS[forward]

    @expands(backward, where=where)
    def gradient_of_resizing(
        g: Tensor, to: Sequence[int], size: Sequence[int], *rest: Any, **options: Any
    ) -> Tensor:
        return gradient(lambda x: resized(x, to, *rest, **options), g.new_zeros(size), g)


_resizing(aten.upsample_linear1d.default, aten.upsample_linear1d_backward.default)
_resizing(aten.upsample_bilinear2d.default, aten.upsample_bilinear2d_backward.default)
_resizing(aten.upsample_trilinear3d.default, aten.upsample_trilinear3d_backward.default)
_resizing(aten.upsample_bicubic2d.default, aten.upsample_bicubic2d_backward.default)
_resizing(aten.upsample_nearest1d.default, aten.upsample_nearest1d_backward.default)
_resizing(aten.upsample_nearest2d.default, aten.upsample_nearest2d_backward.default, _is_uneven)
_resizing(aten.upsample_nearest3d.default, aten.upsample_nearest3d_backward.default)
_resizing(aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact1d_backward.default)
_resizing(aten._upsample_nearest_exact2d.default, aten._upsample_nearest_exact2d_backward.default)
_resizing(aten._upsample_nearest_exact3d.default, aten._upsample_nearest_exact3d_backward.default)
expands_as_torch(aten.upsample_nearest2d.vec, where=_is_uneven)
expands_as_torch(
    *(aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec),
    *(aten.upsample_bicubic2d.vec, aten.upsample_nearest1d.vec, aten.upsample_nearest3d.vec),
    *(aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec),
    *(aten._upsample_nearest_exact3d.vec, aten.affine_grid_generator.default),
)


@expands(aten.grid_sampler_2d.default)
def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """torch's decomposition with one exception: unless the interpolation is cubic, reflection padding
    reflects the grid before the grid is scaled.
    """
    if padding == REFLECTION and mode != CUBIC:
        grid, padding = _reflected(grid), BORDER
    sampled: Tensor = decomposition_table[aten.grid_sampler_2d.default](x, grid, mode, padding, align_corners)
    return sampled


@expands(aten.grid_sampler_2d_backward.default)
def grid_sampler_gradient(
    g: Tensor, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients with respect to the image and the grid."""
    found = gradients(lambda image, at: grid_sampler(image, at, mode, padding, align_corners), (x, grid), g)
    of_grid = found[1]
    if padding in (BORDER, REFLECTION) and mode != CUBIC:
        # As in torch, also a place on the border has no gradient.
        at = _reflected(grid) if padding == REFLECTION else grid
        inside = [_is_inside(at[..., axis], x.shape[3 - axis], align_corners) for axis in (0, 1)]
        of_grid = torch.where(torch.stack(inside, -1), of_grid, 0.0)
    return (found[0] if mask[0] else None), (of_grid if mask[1] else None)


def _reflected(grid: Tensor) -> Tensor:
    """Coordinates reflected at -1 and 1."""
    turned = (grid + 1).abs()
    turned = turned - 4 * (turned / 4).floor()
    return torch.where(turned > 2, 3 - turned, turned - 1)


def _is_inside(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    """Whether a place lies between the centres of the first and the last pixel, computed as in torch's
    decomposition.
    """
    place = coordinate * (size * 0.5 - (0.5 if align_corners else 0.0)) + (size * 0.5 - 0.5)
    return (place > 0) & (place < size - 1)
