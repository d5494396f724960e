"""Reflection and replication padding, as torch decomposes them, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch._ops import OpOverload

from protocol.capture.expansion.table import EXPANSIONS, aten, expands, expands_as_torch, gradient


def _padding(forward: OpOverload, backward: OpOverload) -> None:
    expands_as_torch(forward)
    pad = EXPANSIONS[forward]

    @expands(backward)
    def gradient_of_padding(g: Tensor, x: Tensor, widths: Sequence[int]) -> Tensor:
        return gradient(lambda leaf: pad(leaf, widths), x, g)


_padding(aten.reflection_pad1d.default, aten.reflection_pad1d_backward.default)
_padding(aten.reflection_pad2d.default, aten.reflection_pad2d_backward.default)
_padding(aten.reflection_pad3d.default, aten.reflection_pad3d_backward.default)
_padding(aten.replication_pad1d.default, aten.replication_pad1d_backward.default)
_padding(aten.replication_pad2d.default, aten.replication_pad2d_backward.default)
_padding(aten.replication_pad3d.default, aten.replication_pad3d_backward.default)
