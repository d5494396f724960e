"""Checks that every step does the same as the traced one: two traces are compared, and so are Python's values
before and after a step.

A trace holds only one path through the submitter's code. The next step may take another path because a
counter advanced, a flag was set, time passed or a random number was drawn. The program would not contain that
path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from protocol.capture.errors import Problem
from protocol.capture.inputs.python_state import PythonState
from protocol.capture.preflight import checks
from protocol.capture.tracing.tracer import TracedStep


def moved(before: PythonState, after: PythonState) -> list[Problem]:
    """A problem for each Python value that changed between the two states."""
    return [checks.moved(change) for change in before.changes(after)]


def traced_otherwise(first: TracedStep, second: TracedStep) -> Iterator[Problem]:
    """The first difference between two traces of the same step, if there is one."""
    ours, theirs = list(first.graph.nodes), list(second.graph.nodes)
    numbers = {node: k for nodes in (ours, theirs) for k, node in enumerate(nodes)}
    for a, b in zip(ours, theirs):
        if a.op != b.op or (a.op == "call_function" and a.target is not b.target):
            what = f"the step calls {_called(a)} the first time, {_called(b)} the second time"
            yield checks.traced_otherwise(what, a, b)
            return
        pairs = zip(_leaves(a, numbers), _leaves(b, numbers))
        for x, y in pairs:
            if not _equal(x, y):
                yield checks.traced_otherwise(
                    f"{_called(a)} takes {_text(x)} the first time, {_text(y)} the second time", a, b
                )
                return
    if len(ours) != len(theirs):
        longer = ours if len(ours) > len(theirs) else theirs
        extra = longer[min(len(ours), len(theirs))]
        yield checks.traced_otherwise(
            f"the step calls {_called(extra)} one time, and not the other", extra, extra
        )
        return
    holders = [node for node in ours if node.op == "placeholder"][len(first.parameters) :]
    for (name, x), node in zip(first.buffers.items(), holders):
        y = second.buffers[name]
        if x.numpy().tobytes() != y.numpy().tobytes():
            what = (
                f"a tensor that the code spells out is {_text(x)} the first time, {_text(y)} the second time"
            )
            yield checks.traced_otherwise(what, node, node)
            return


def _called(node: Node) -> str:
    return str(node.target) if node.op == "call_function" else node.op


def _leaves(node: Node, numbers: dict[Node, int]) -> Iterator[Any]:
    """A node's operands and literals, in order; nodes are replaced by their number in the graph."""
    if node.op == "get_attr":
        assert isinstance(node.target, str)
        yield getattr(node.graph.owning_module, node.target)
        return
    if node.op != "placeholder":
        yield from _flat(map_arg((node.args, node.kwargs), lambda operand: f"%{numbers[operand]}"))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, tuple | list):
        yield len(value)
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(a, b))
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def _text(value: Any) -> str:
    return f"the tensor {value.tolist()}"[:80] if isinstance(value, Tensor) else repr(value)
