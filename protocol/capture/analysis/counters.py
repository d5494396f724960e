"""Bounds of the integer buffers that a step writes, such as counters. The bounds hold over all steps of a task.

`ranges` decides which buffers are widened together: those of one phase, or those that several phases write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from torch import Tensor
from torch.fx import Graph, Node

from protocol.capture.analysis.intervals import FULL, UNKNOWN, Interval, hull
from protocol.capture.analysis.transfers import bounds_of

Buffers = dict[Node, Interval]
Key = TypeVar("Key")
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

    In cases 2 and 3, the bounds are narrowed once, to what the counters are initially and after a step from these
    bounds. So a step that ends with a clamp gets the bounds of the clamp.
    """
    if not counters:
        return {}
    first = {node: Interval(int(t.min()), int(t.max())) for node, (t, _) in counters.items()}

    def after(bounds: Buffers) -> Buffers:
        return dict(
            zip(counters, bounds_after(graph, {**known, **bounds}, [n for _, n in counters.values()]))
        )

    return widened(first, after, steps)


def bounds_after(graph: Graph, known: Mapping[Node, Interval], nodes: list[Node]) -> list[Interval]:
    """The bounds of `nodes` of `graph`. `known` has the bounds of the placeholders."""
    values = dict(known)
    for node in _above(graph, nodes):
        if node.op == "call_function":
            values[node] = bounds_of(node, values)
        else:
            values.setdefault(node, UNKNOWN)
    return [values[node] for node in nodes]


def widened(
    first: Mapping[Key, Interval], after: Callable[[dict[Key, Interval]], dict[Key, Interval]], steps: int
) -> dict[Key, Interval]:
    """Bounds that hold before every one of `steps` steps, by the three cases of `bounds_over_steps`. `first` holds
    before the first step, and `after` maps bounds before a step to bounds after it.
    """
    reached = dict(first)
    for _ in range(ROUNDS):
        new = after(reached)
        wider = {key: hull([bounds, new[key]]) for key, bounds in reached.items()}
        if wider == reached:
            return reached
        reached = wider
    once = after(dict(first))

    def at(step: int) -> dict[Key, Interval]:
        return {
            key: Interval(
                bounds.low + step * min(0, once[key].low - bounds.low),
                bounds.high + step * max(0, once[key].high - bounds.high),
            )
            for key, bounds in first.items()
        }

    def is_linear(step: int) -> bool:
        following = at(step + 1)
        return all(new.inside(following[key]) for key, new in after(at(step)).items())

    found = at(steps - 1) if all(map(is_linear, _doubling(steps - 1))) else dict.fromkeys(first, FULL)
    new = {key: hull([first[key], bounds]) for key, bounds in after(found).items()}
    return {
        key: Interval(max(bounds.low, new[key].low), min(bounds.high, new[key].high))
        for key, bounds in found.items()
    }


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
