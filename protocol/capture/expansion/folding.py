"""Replaces some tables by literals: those that a step computes in float64 from constants alone, such as the
tables of rotary embeddings.

No program has the type float64, so torch computes these tables once. They depend neither on data nor on
trained values.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import replace
from itertools import count
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.utils._pytree import tree_leaves

from protocol.capture.expansion.constants import value_of
from protocol.capture.tracing.tracer import TracedStep, constants_of
from protocol.capture.types import PROGRAM_TYPES, as_committed, fits

MOST_ELEMENTS: Final = 1 << 24
"""Tensors with more elements than this are not computed in advance."""


def folded(traced: TracedStep, taken: Collection[str] = ()) -> TracedStep:
    """The step with constant tables replaced by literals. No literal gets a name in `taken`."""
    known: dict[Node, Any] = dict(constants_of(traced))
    graph, found = traced.graph, dict[Node, Tensor]()
    for node in graph.nodes:
        if node.op == "get_attr":  # a literal in a type that no program has
            known[node] = getattr(graph.owning_module, str(node.target))
    with torch.no_grad():
        for node in graph.nodes:
            if node.op == "call_function" and _is_held(node) and any(map(_is_outside, node.all_input_nodes)):
                value = value_of(node, known, _is_fixed)
                if value is not None and value.numel() and fits(value):
                    found[node] = value
    if not found:
        return traced
    holders = [node for node in graph.nodes if node.op == "placeholder"]
    last = holders[len(traced.parameters) + len(traced.buffers) - 1]
    used = {*traced.parameters, *traced.buffers, *taken}
    numbers = (k for k in count() if f"literal.{k}" not in used)
    literals: dict[str, Tensor] = {}
    for node, value in found.items():
        with graph.inserting_after(last):
            last = graph.placeholder(node.name)
        last.meta = dict(node.meta)
        node.replace_all_uses_with(last)
        _erase(graph, node)
        literals[f"literal.{next(numbers)}"] = as_committed(value)
    graph.lint()
    return replace(traced, buffers={**traced.buffers, **literals})


def _is_held(node: Node) -> bool:
    """Whether a program can hold the type of a node's result."""
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.dtype in PROGRAM_TYPES


def _is_outside(node: Node) -> bool:
    """Whether a node has a result in a type that no program has."""
    return any(
        t.dtype not in PROGRAM_TYPES for t in tree_leaves(node.meta.get("val")) if isinstance(t, Tensor)
    )


def _is_fixed(node: Node) -> bool:
    """Whether an operation gives the same result every time and is small enough to be computed in advance."""
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    values = tree_leaves(node.meta.get("val"))
    return all(isinstance(t, Tensor) and t.numel() <= MOST_ELEMENTS for t in values)


def _erase(graph: Graph, node: Node) -> None:
    """Erase a node without users, and the nodes that only it used."""
    pending = [node]
    while pending:
        each = pending.pop()
        if not each.users and each.op in ("call_function", "get_attr"):
            operands = each.all_input_nodes
            graph.erase_node(each)
            pending.extend(x for x in operands if not x.users)
