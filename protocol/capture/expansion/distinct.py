"""Finds writes whose places are all distinct. torch does not define which value remains at a place that is
written twice.

Such writes occur in the gradient of a sort, and in code whose indices are constants, for example the indices
of the upper triangle of a matrix.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.utils._pytree import tree_leaves

from protocol.capture.expansion.constants import value_of

aten = torch.ops.aten
ORDERINGS = {aten.sort.default, aten.sort.stable, aten.topk.default}
SAME = {aten.alias.default, aten.detach.default, aten.clone.default}
PUTS = {aten.index_put.default, aten._unsafe_index_put.default}
DISTINCT = "distinct"
"""Key in the `meta` of a node whose operation is in `PUTS`: whether the node's indices are known to be distinct."""
MOST_INDICES = 1 << 20
"""Tensors of indices with more elements than this are neither computed nor checked."""
ZEROS = {aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default}


def add_where_distinct(graph: Graph) -> None:
    """Replace a scatter onto zeros by a `scatter_add` if its indices come from a sort or `topk` along the
    same axis.
    """
    for node in graph.nodes:
        if node.target is aten.scatter.src and _origin(node.args[0]).target in ZEROS:
            axis, places = node.args[1], _origin(node.args[2])
            if places.target is operator.getitem and places.args[1] == 1 and _is_along(places.args[0], axis):
                node.target = aten.scatter_add.default


def are_distinct(places: Any) -> bool:
    """Whether `places` is a one-dimensional node of indices that a sort or `topk` returned, so that no index
    repeats.
    """
    found: Any = _origin(places)
    if found.target is not operator.getitem or found.args[1] != 1 or found.meta["val"].dim() != 1:
        return False
    return _is_along(found.args[0], 0)


def mark_distinct(graph: Graph, constants: Mapping[Node, Tensor]) -> None:
    """For each write by index that replaces elements (rather than adding to them), record whether its indices
    are distinct. Nothing is recorded if the indices cannot be computed from `constants` by operations for
    which `_is_of_integers` holds.
    """
    known: dict[Node, Any] = dict(constants)
    for node in graph.nodes:
        if node.target in PUTS and not (len(node.args) > 3 and node.args[3]):
            found = [
                None if index is None else value_of(index, known, _is_of_integers) for index in node.args[1]
            ]
            if all(t is not None for t, index in zip(found, node.args[1]) if index is not None):
                node.meta[DISTINCT] = _are_distinct(found, node.args[0].meta["val"].shape)


def _is_of_integers(node: Node) -> bool:
    """Whether a node computes only tensors of integers or bools, with at most `MOST_INDICES` elements each,
    and without random numbers.
    """
    values = tree_leaves(node.meta.get("val"))
    if isinstance(node.target, OpOverload):
        fixed = torch.Tag.nondeterministic_seeded not in node.target.tags
    else:
        fixed = node.target is operator.getitem
    return fixed and all(
        isinstance(t, Tensor) and not t.is_floating_point() and t.numel() <= MOST_INDICES for t in values
    )


def _are_distinct(indices: list[Tensor | None], shape: torch.Size) -> bool:
    """Whether `indices` select no place twice. They are the indices along the first axes of a tensor of this
    `shape`. False if one of them is a mask.
    """
    given = [(t, size) for t, size in zip(indices, shape) if t is not None]
    if any(t.dtype is torch.bool for t, _ in given):
        return False
    place = torch.zeros((), dtype=torch.int64)
    for t, size in given:
        place = place * size + t % size
    return int(place.unique().numel()) == place.numel()


def _is_along(ordering: Any, axis: int) -> bool:
    """Whether the node `ordering` is a sort or `topk` along an axis."""
    if ordering.target not in ORDERINGS:
        return False
    schema = ordering.target._schema.arguments
    given = dict(zip((argument.name for argument in schema), ordering.args)) | ordering.kwargs
    rank = max(ordering.meta["val"][0].dim(), 1)
    return bool(given.get("dim", -1) % rank == axis % rank)


def _origin(node: Any) -> Node:
    while node.target in SAME:
        node = node.args[0]
    found: Node = node
    return found
