"""Bounds of the integer buffers that a step writes, such as counters. The bounds hold over all steps of a task.

The bounds of several buffers are widened together. `ranges` decides which buffers form such a group. There
are two kinds of group: buffers that only one phase writes, each the same number of times per step; and all
buffers that more than one phase writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor
from torch.fx import Graph, Node

from protocol.capture.analysis.intervals import FULL, UNKNOWN, Interval, hull
from protocol.capture.analysis.transfers import bounds_of, is_hull, is_integer

aten = torch.ops.aten
Buffers = dict[Node, Interval]
Key = TypeVar("Key")
Growth = tuple[int, int]
"""By how much each step lowers the lower bound of a buffer and raises the upper bound, at most."""
ROUNDS = 3
"""The number of steps over which the bounds are widened first, to see whether they stop growing."""
MOST_ROUNDS = 4_096
"""The maximum number of steps over which the bounds are widened if they cannot be shown to grow evenly.
Widening them over one step takes about 20 µs for each operation that the new contents of a counter depend on.
"""


def bounds_over_steps(
    graph: Graph, known: Mapping[Node, Interval], counters: Mapping[Node, tuple[Tensor, Node]], steps: int
) -> Buffers:
    """Bounds for each of the `counters`. The bounds hold before every one of `steps` steps.

    Each of the `counters` is a placeholder of `graph`. It is mapped to its initial contents, and to the node
    whose result the step writes into it. `known` has the bounds of all other placeholders. There are three
    cases:

    1. The bounds stop growing within `ROUNDS` steps. The result is the bounds reached by then.
    2. The operations show that no step widens the bounds by more than the first step does (`growth_after`). The
       result assumes that every step widens the bounds as much as the first step does.
    3. In all other cases, the bounds are widened step by step, over at most `MOST_ROUNDS` steps. If they still
       grow and there are more steps, or if they leave i32, all counters get the bounds of i32.

    In case 2, and where counters get the bounds of i32, the bounds are narrowed once, to what the counters are
    initially and after a step from these bounds. So a step that ends with a clamp gets the bounds of the clamp.
    """
    if not counters:
        return {}
    first = {node: Interval(int(t.min()), int(t.max())) for node, (t, _) in counters.items()}

    def after(bounds: Buffers) -> Buffers:
        return dict(
            zip(counters, bounds_after(graph, {**known, **bounds}, [n for _, n in counters.values()]))
        )

    def growth(before: dict[Node, Growth], last: Buffers) -> dict[Node, Growth] | None:
        found = growth_after(graph, before, {**known, **last}, [n for _, n in counters.values()])
        return None if found is None else dict(zip(counters, found))

    return widened(first, after, growth, steps)


def bounds_after(graph: Graph, known: Mapping[Node, Interval], nodes: list[Node]) -> list[Interval]:
    """The bounds of `nodes` of `graph`. `known` has the bounds of the placeholders."""
    values = dict(known)
    for node in _above(graph, nodes):
        if node.op == "call_function":
            values[node] = bounds_of(node, values)
        else:
            values.setdefault(node, UNKNOWN)
    return [values[node] for node in nodes]


def growth_after(
    graph: Graph, before: Mapping[Node, Growth], last: Mapping[Node, Interval], nodes: list[Node]
) -> list[Growth] | None:
    """By how much each step lowers and raises the bounds of `nodes` of `graph`, at most. `before` has
    the same for placeholders; the bounds of a placeholder that it lacks do not change. `last` has the widest
    bounds of the placeholders. The result is None if the growth cannot be told from the operations, or if an
    integer narrower than int64 may wrap.
    """
    values, found = dict(last), dict[Node, Growth]()
    for node in _above(graph, nodes):
        if node.op != "call_function":
            values.setdefault(node, UNKNOWN)
            found[node] = before.get(node, (0, 0))
            continue
        values[node] = bounds_of(node, values)
        growth = _growth_of(node, values[node], found)
        if growth is None:
            return None
        found[node] = growth
    return [found[node] for node in nodes]


def _growth_of(node: Node, bounds: Interval, found: Mapping[Node, Growth]) -> Growth | None:
    """The growth of an operation's result, as in `growth_after`; `bounds` are the widest bounds of the result."""
    grows = [found[operand] for operand in node.all_input_nodes if found[operand] != (0, 0)]
    value = node.meta.get("val")
    if not grows or value is None or (isinstance(value, Tensor) and not is_integer(node)):
        return 0, 0  # the bounds of floats and bools are always the same
    if may_wrap(node, bounds):
        return None
    if is_hull(node):
        return max(low for low, _ in grows), max(high for _, high in grows)
    if node.target in (aten.add.Tensor, aten.sub.Tensor) and not node.kwargs:
        x, y = (found[each] if isinstance(each, Node) else (0, 0) for each in node.args)
        if node.target is aten.sub.Tensor:
            y = y[::-1]
        return x[0] + y[0], x[1] + y[1]
    if node.target is aten.mul.Tensor and type(factor := node.args[1]) is int:
        low, high = grows[0] if factor >= 0 else grows[0][::-1]
        return abs(factor) * low, abs(factor) * high
    return None


def may_wrap(node: Node, bounds: Interval) -> bool:
    """Whether a node's integers may have wrapped. This is assumed if their type is narrower than int64, and
    their `bounds` are exactly the range of that type or lie partly outside it.
    """
    dtype = node.meta["val"].dtype if is_integer(node) else torch.int64
    if dtype is torch.int64:
        return False
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return not (least <= bounds.low and bounds.high <= most) or (bounds.low, bounds.high) == (least, most)


def widened(
    first: Mapping[Key, Interval],
    after: Callable[[dict[Key, Interval]], dict[Key, Interval]],
    growth: Callable[[dict[Key, Growth], dict[Key, Interval]], dict[Key, Growth] | None],
    steps: int,
) -> dict[Key, Interval]:
    """Bounds that hold before every one of `steps` steps, by the three cases of `bounds_over_steps`. `first` holds
    before the first step, and `after` maps bounds before a step to bounds after it. `growth` maps the growth
    before a step, and the widest bounds before a step, to the growth after it, as in `growth_after`.
    """
    reached, found = dict(first), dict.fromkeys(first, FULL)
    for step in range(MOST_ROUNDS):
        if step >= steps - 1:
            return reached
        if step == ROUNDS and (even := _evenly(first, after, growth, steps)) is not None:
            found = even
            break
        new = after(reached)
        wider = {key: hull([bounds, new[key]]) for key, bounds in reached.items()}
        if wider == reached:
            return reached
        reached = wider
        if step >= ROUNDS and not all(bounds.in_32_bits for bounds in reached.values()):
            break
    new = {key: hull([first[key], bounds]) for key, bounds in after(found).items()}
    return {
        key: Interval(max(bounds.low, new[key].low), min(bounds.high, new[key].high))
        for key, bounds in found.items()
    }


def _evenly(
    first: Mapping[Key, Interval],
    after: Callable[[dict[Key, Interval]], dict[Key, Interval]],
    growth: Callable[[dict[Key, Growth], dict[Key, Interval]], dict[Key, Growth] | None],
    steps: int,
) -> dict[Key, Interval] | None:
    """The bounds if every step widens them by as much as the first. None if a step may widen them by more."""
    once = after(dict(first))
    each = {
        key: (max(0, bounds.low - once[key].low), max(0, once[key].high - bounds.high))
        for key, bounds in first.items()
    }
    last = {
        key: Interval(bounds.low - (steps - 1) * each[key][0], bounds.high + (steps - 1) * each[key][1])
        for key, bounds in first.items()
    }
    found = growth(each, last)
    if found is None or any(low > each[key][0] or high > each[key][1] for key, (low, high) in found.items()):
        return None
    return last


def _above(graph: Graph, nodes: list[Node]) -> list[Node]:
    found = set(nodes)
    for node in reversed(graph.nodes):
        if node in found:
            found.update(node.all_input_nodes)
    return [node for node in graph.nodes if node in found]
