"""Bounds of the integer buffers that a step writes, such as counters. The bounds hold over all steps of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor
from torch.fx import Graph, Node

from protocol.capture.analysis.intervals import FULL, UNKNOWN, Interval, hull
from protocol.capture.analysis.transfers import bounds_of

Buffers = dict[Node, Interval]
ROUNDS = 3
"""The number of steps over which the bounds are widened, to see whether they stop growing."""


def bounds_over_steps(
    graph: Graph, known: Mapping[Node, Interval], counters: Mapping[Node, tuple[Tensor, Node]], steps: int
) -> Buffers:
    """Bounds for each of the `counters`. The bounds hold before every one of `steps` steps.

    Each of the `counters` is a placeholder of `graph`. It is mapped to its initial contents, and to the node
    whose result the step writes into it. `known` has the bounds of all other placeholders. There are three
    cases:

    1. The bounds stop growing within `ROUNDS` steps. The result is the bounds reached by then.
    2. No step widens the bounds by more than the first step does. This is checked at steps 0, 1, 2, 4, 8, …
       and the last. The result assumes that every step widens the bounds as much as the first step does.
    3. In all other cases, all counters get the bounds of i32.
    """
    if not counters:
        return {}
    first = {node: Interval(int(t.min()), int(t.max())) for node, (t, _) in counters.items()}
    part = _above(graph, [new for _, new in counters.values()])

    def after(bounds: Buffers) -> Buffers:
        values = {**known, **bounds}
        for node in part:
            if node.op == "call_function":
                values[node] = bounds_of(node, values)
            else:
                values.setdefault(node, UNKNOWN)
        return {node: values[new] for node, (_, new) in counters.items()}

    reached = first
    for _ in range(ROUNDS):
        wider = {
            node: hull([bounds, new]) for (node, bounds), new in zip(reached.items(), after(reached).values())
        }
        if wider == reached:
            return reached
        reached = wider
    once = after(first)

    def at(step: int) -> Buffers:
        return {
            node: Interval(
                bounds.low + step * min(0, once[node].low - bounds.low),
                bounds.high + step * max(0, once[node].high - bounds.high),
            )
            for node, bounds in first.items()
        }

    for step in _doubling(steps - 1):
        following = at(step + 1)
        if not all(new.inside(following[node]) for node, new in after(at(step)).items()):
            return dict.fromkeys(first, FULL)
    return at(steps - 1)


def _above(graph: Graph, nodes: list[Node]) -> list[Node]:
    found = set(nodes)
    for node in reversed(graph.nodes):
        if node in found:
            found.update(node.all_input_nodes)
    return [node for node in graph.nodes if node in found]


def _doubling(last: int) -> Iterator[int]:
    yield 0
    step = 1
    while step < last:
        yield step
        step *= 2
    yield last
