"""Views: the same elements seen otherwise. No instruction is made here (see `capture.views`)."""

from __future__ import annotations

from typing import Any

import torch

from protocol.program.capture.lowering import Lowering, lowers
from protocol.program.capture.views import View

aten = torch.ops.aten


@lowers(aten.detach.default, aten.alias.default, aten.clone.default, aten.lift_fresh_copy.default)
def same(_: Lowering, __: torch.fx.Node, x: View, **___: Any) -> View:
    """Nothing happens to the elements; `clone`'s memory format is torch's own affair."""
    return x


@lowers(
    aten.t.default,
    aten.transpose.int,
    aten.permute.default,
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.expand.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.diagonal.default,
    aten.unfold.default,
)
def view(lowering: Lowering, node: torch.fx.Node, x: View, *args: Any, **kwargs: Any) -> View:
    """One affine map, worked out by torch on a meta tensor."""
    operation = node.target
    if operation in (aten._unsafe_view.default, aten.reshape.default):
        operation = aten.view.default
    return x.apply(lowering.builder, operation, *args, **kwargs)  # type: ignore[arg-type]
