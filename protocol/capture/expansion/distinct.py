"""Writes at places that no two elements share, as the gradient of a sort makes them: they are sums onto zeros."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten
ORDERINGS = {aten.sort.default, aten.sort.stable, aten.topk.default}
SAME = {aten.alias.default, aten.detach.default, aten.clone.default}
ZEROS = {aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default}


def add_where_distinct(graph: Graph) -> None:
    """Make a scatter onto zeros, along the axis of an ordering at the places that it gave, a scatter that adds."""
    for node in graph.nodes:
        if node.target is aten.scatter.src and _origin(node.args[0]).target in ZEROS:
            axis, places = node.args[1], _origin(node.args[2])
            if places.target is operator.getitem and places.args[1] == 1 and _is_along(places.args[0], axis):
                node.target = aten.scatter_add.default


def are_distinct(places: Any) -> bool:
    """Whether a node's places along one axis come from an ordering of one axis, which gives none twice."""
    found: Any = _origin(places)
    if found.target is not operator.getitem or found.args[1] != 1 or found.meta["val"].dim() != 1:
        return False
    return _is_along(found.args[0], 0)


def _is_along(ordering: Any, axis: int) -> bool:
    """Whether a node orders along an axis."""
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
