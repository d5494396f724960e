"""Replaces uninitialised tensors, such as those of `torch.empty`, by zeros.

A tensor is replaced only if the code writes every element, part by part, as rotary embeddings do. In this
module, such tensors are called empty.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

aten = torch.ops.aten
EMPTY = {aten.empty_like.default, aten.empty.memory_format}
OVERWRITING = {
    *(aten.bernoulli.p, aten.copy.default, aten.zero.default),
    *(aten.fill.Scalar, aten.fill.Tensor),
}
"""Operations whose result does not depend on the contents of their first operand."""
WRITES = {aten.select_scatter.default, aten.slice_scatter.default}
"""Operations that replace a part of one tensor by another tensor."""
PARTS = {
    *(aten.select.int, aten.slice.Tensor, aten.alias.default, aten.view.default),
    *(aten.transpose.int, aten.permute.default, aten.unsqueeze.default),
}
"""Operations that only view elements."""


def zeros_where_written(graph: Graph) -> None:
    """Replace empty tensors by zeros. A tensor is replaced if all its elements are written before any of them
    is used in a computation.

    There is one exception: an empty tensor is kept if every operation that takes it overwrites it completely.
    Lowering refuses all other empty tensors that remain.
    """
    for node in list(graph.nodes):
        if node.target in EMPTY and not is_overwritten(node) and _is_written(node):
            value = node.meta["val"]
            fill = False if value.dtype is torch.bool else 0
            with graph.inserting_before(node):
                zeros = graph.call_function(
                    aten.full.default, ([*value.shape], fill), {"dtype": value.dtype, "device": value.device}
                )
            zeros.meta = dict(node.meta)
            node.replace_all_uses_with(zeros)
            graph.erase_node(node)


def is_overwritten(node: Node) -> bool:
    """Whether every operation that takes the empty tensor overwrites it, so that its contents do not matter."""
    return all(user.target in OVERWRITING and node not in user.args[1:] for user in node.users)


def _is_written(node: Node) -> bool:
    """Whether all elements of an empty tensor are written before an operation computes with any of them."""
    written = {node: torch.zeros(node.meta["val"].shape, dtype=torch.bool)}
    """For each tensor that still holds unwritten elements: a mask of the elements that are written."""
    for user in list(node.graph.nodes):
        if user.target in OVERWRITING and not any(x in written for x in user.args[1:]):
            continue
        if not any(x in written for x in user.all_input_nodes):
            continue
        if user.target not in PARTS | WRITES:
            return False
        operands = {
            x: written.get(x, torch.ones(x.meta["val"].shape, dtype=torch.bool)) for x in user.all_input_nodes
        }
        found = user.target(*map_arg(user.args, operands.__getitem__), **user.kwargs)
        if not found.all():
            written[user] = found
    return True
