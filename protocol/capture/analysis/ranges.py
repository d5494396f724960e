"""Finds integers that a program cannot hold or use as an index. Runs on the committed data, before lowering.

torch refuses an index outside a tensor, but a program reads zeros there. torch's int64 becomes i32 in a
program, which wraps at 32 bits. So every index must be one that torch allows, and every int64 must fit 32
bits. An int32 may wrap, because it wraps in torch as well. Bounds are found by interval arithmetic
(`analysis.intervals`) from the smallest and largest values of the dataset, constants and buffers. For written
buffers, the bounds hold over all steps of the task, also where another phase reads them. If bounds do not
suffice, all rows of the dataset are run through torch (`analysis.rows`). Integers that cannot be shown to be
right are refused.

Two cases are left to the preflight, which compares a few steps:

- indices that depend on trained or random values, unless an operation (`argmax`, `clamp`, `remainder`)
  bounds them;
- integers converted from trained or random values, which saturate at 32 bits in a program, and everything
  computed from these integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntFlag
from types import MappingProxyType

import torch
from torch import Tensor
from torch.fx import Node

from protocol.capture.analysis.checks import (
    index_out_of_range,
    index_unbounded,
    may_be_too_wide,
    moving_too_wide,
    not_examined,
    too_wide,
)
from protocol.capture.analysis.counters import (
    Growth,
    bounds_after,
    bounds_over_steps,
    growth_after,
    may_wrap,
    widened,
)
from protocol.capture.analysis.indices import Index, indices_of
from protocol.capture.analysis.intervals import BIT, FULL, UNKNOWN, Interval, hull, wrapped
from protocol.capture.analysis.rows import Found, Rows
from protocol.capture.analysis.transfers import TRANSFERS, bounds_of, is_integer
from protocol.capture.errors import CaptureError, Problem, Problems
from protocol.capture.tracing.tracer import TracedStep, constants_of

aten = torch.ops.aten
OF_NO_NUMBER = torch.iinfo(torch.int64).min
"""The int64 that infinity and NaN are expected to become when they are converted; C++ leaves the result
undefined. This value is not refused, because models later drop such elements.
"""
COUNTED = Interval(-(2**62), 2**62)
"""Bounds beyond this come from trained or random values, about which nothing is known, or from a counter that
its own phase refuses.
"""
RANDOM = {aten.native_dropout.default, aten.bernoulli.p, aten.rand.default}


class Origin(IntFlag):
    """The kinds of data that a value depends on, apart from constants."""

    NOTHING = 0
    DATASET = 1
    COUNTERS = 2
    """Integer buffers that the step writes, in this phase or another."""
    TRAINED = 4
    """Parameters, float buffers that the step writes, and random numbers. Values that were refused also get
    this origin.
    """


def require_ranges(
    traced: TracedStep,
    dataset: Mapping[str, Tensor],
    steps: int,
    moving: Mapping[str, Interval] | None = None,
    units: Mapping[str, int] | None = None,
) -> None:
    """Refuse indices that torch refuses, and int64 values beyond 32 bits, in `steps` steps on the committed
    `dataset`. `moving` has bounds of integer buffers that other phases write; such a buffer may hold any i32
    if it is missing there. `units` has how often a step writes each accumulated buffer, by name. A step
    writes all other buffers once.

    The `CaptureError` names the line of each operation that is refused. If the rows of the dataset show the
    problem, the error also names the row and the value. An int64 buffer to which another phase may give
    integers beyond 32 bits is refused by its name, without a line, unless its bounds exceed `COUNTED`.
    """
    _Ranges(traced, dataset, steps, moving or {}, units or {}).check().raise_any()


def bounds_of_written(
    traced: TracedStep, dataset: Mapping[str, Tensor], steps: int, moving: Mapping[str, Interval]
) -> Mapping[str, Interval]:
    """Bounds of the integer buffers that the step writes, by name. The bounds hold before every one of
    `steps` steps. `moving` is as in `require_ranges`. For a buffer that another phase writes as well, the
    bounds are those in `moving`.
    """
    return _Ranges(traced, dataset, steps, moving).written


def bounds_of_shared(
    phases: Sequence[TracedStep],
    dataset: Mapping[str, Tensor],
    steps: int,
    units: Sequence[Mapping[str, int]],
    always: Sequence[bool],
) -> list[dict[str, Interval]]:
    """For each of the `phases`: bounds of the integer buffers that more than one of them writes, by name. The
    bounds hold whenever the phase begins to act in one of `steps` steps.

    `units` has, for each phase, how often it writes an accumulated buffer in one step, as in `require_ranges`.
    `always` says of each phase whether it acts in every step. Any other phase may act or not.
    """
    writers = Counter(name for traced in phases for name in traced.written)
    first = {
        name: Interval(int(t.min()), int(t.max()))
        for traced in phases
        for name, t in traced.buffers.items()
        if writers[name] > 1 and not t.is_floating_point()
    }
    if not first:
        return [{} for _ in phases]
    graphs = [_Ranges(traced, dataset, steps, {}, often) for traced, often in zip(phases, units)]

    def after(bounds: dict[str, Interval], acting: int = len(phases)) -> dict[str, Interval]:
        """The bounds after the first `acting` phases, given those before the step."""
        for ranges, acts in zip(graphs[:acting], always):
            for name, new in ranges.after(bounds).items():
                bounds = bounds | {name: new if acts else hull([bounds[name], new])}
        return bounds

    def growth(before: dict[str, Growth], last: dict[str, Interval]) -> dict[str, Growth] | None:
        for ranges, acts in zip(graphs, always):
            found = ranges.growth(before, last)
            if found is None:
                return None
            new = ranges.after(last)
            for name, (low, high) in found.items():
                old = before[name]
                before = before | {name: (low, high) if acts else (max(low, old[0]), max(high, old[1]))}
                last = last | {name: new[name] if acts else hull([last[name], new[name]])}
        return before

    begun = widened(first, after, growth, steps)
    return [after(begun, acting) for acting in range(len(phases))]


class _Ranges:
    """Checks one graph. `bounds` maps each node to the bounds of its integers, or to UNKNOWN for floats.
    `written` has the bounds of the integer buffers that the graph writes, by name.
    """

    def __init__(
        self,
        traced: TracedStep,
        dataset: Mapping[str, Tensor],
        steps: int,
        moving: Mapping[str, Interval],
        units: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.graph = traced.graph
        holders = [node for node in traced.graph.nodes if node.op == "placeholder"]
        fixed = holders[len(traced.parameters) :]
        buffers = dict(zip(traced.buffers, fixed))
        batch = fixed[len(buffers) :]
        self.names = dict(zip(batch, dataset))
        constants = constants_of(traced)
        self.leaves = constants | dict(zip(batch, dataset.values()))
        self.rows = Rows(traced.graph, constants, dict(zip(batch, dataset.values())))
        self.bounds = dict.fromkeys(holders, UNKNOWN) | {
            node: Interval(int(t.min()), int(t.max()), frozenset([node]))
            for node, t in self.leaves.items()
            if not t.is_floating_point()
        }
        elsewhere = {
            buffers[name]: moving.get(name, BIT if t.dtype is torch.bool else FULL)
            for name, t in traced.buffers.items()
            if name in traced.moving and not t.is_floating_point()
        }
        self.bounds |= elsewhere
        outputs: tuple[Node, ...] = traced.graph.output_node().args[0]  # type: ignore[assignment]
        after = outputs[len(outputs) - len(traced.written) :]
        written = {
            name: new
            for name, new in zip(traced.written, after)
            if not traced.buffers[name].is_floating_point()
        }
        counters = {
            buffers[name]: (traced.buffers[name], new)
            for name, new in written.items()
            if name not in traced.moving
        }
        self._units = {buffers[name]: times for name, times in units.items() if name in written}
        # Nothing reads an accumulated buffer except its own update, so these buffers are widened separately.
        for times in {self._units.get(old, 1) for old in counters}:
            together = {old: each for old, each in counters.items() if self._units.get(old, 1) == times}
            self.bounds |= bounds_over_steps(traced.graph, self.bounds, together, steps * times)
        self._moving = {
            name: (node, moving[name])
            for name, node in buffers.items()
            if node in elsewhere and name in moving and node.meta["val"].dtype is torch.int64
        }
        self._shared = {name: (buffers[name], new) for name, new in written.items() if name in traced.moving}
        begun = {name: self.bounds[old] for name, (old, _) in self._shared.items()}
        self.bounds |= {
            old: hull([begun[name], bounds])
            for (name, bounds), (old, _) in zip(self.after(begun, 1).items(), self._shared.values())
            if self._units.get(old, 1) > 1
        }
        self.written = {name: self.bounds[buffers[name]] for name in written}
        self.origins = dict.fromkeys(holders, Origin.TRAINED) | dict.fromkeys(constants, Origin.NOTHING)
        self.origins |= dict.fromkeys(batch, Origin.DATASET)
        self.origins |= dict.fromkeys((*counters, *elsewhere), Origin.COUNTERS)
        self.checked: set[tuple[Node, Interval, int | None]] = set()
        self.problems = Problems()

    def after(self, bounds: Mapping[str, Interval], left: int = 0) -> dict[str, Interval]:
        """Bounds of the buffers that both this graph and another phase write. `bounds` holds before the
        graph, and the result after it. For an accumulated buffer, the result holds when all but the last
        `left` units of the step have run.
        """
        before = {old: _held(old, bounds[name]) for name, (old, _) in self._shared.items()}
        found = bounds_after(self.graph, self.bounds | before, [new for _, new in self._shared.values()])
        return {
            name: self._repeated(old, before[old], new, left)
            for (name, (old, _)), new in zip(self._shared.items(), found)
        }

    def growth(self, before: Mapping[str, Growth], last: Mapping[str, Interval]) -> dict[str, Growth] | None:
        """The growth of the buffers that both this graph and another phase write, or None, as in
        `counters.growth_after`. `before` (the growth) and `last` (the widest bounds) hold before the graph,
        and the result after it.
        """
        shared, new = dict(self._shared), self.after(last)
        known = {old: before[name] for name, (old, _) in shared.items()}
        if any(may_wrap(old, last[name]) or may_wrap(old, new[name]) for name, (old, _) in shared.items()):
            return None
        bounds = self.bounds | {old: last[name] for name, (old, _) in shared.items()}
        found = growth_after(self.graph, known, bounds, [after for _, after in shared.values()])
        return None if found is None else dict(zip(shared, found))

    def _repeated(self, node: Node, old: Interval, new: Interval, left: int) -> Interval:
        """Bounds of a buffer when all but the last `left` units of a step have run. `old` and `new` are its
        bounds before and after the first unit.
        """
        times = self._units.get(node, 1) - left
        low, high = old.low + times * (new.low - old.low), old.high + times * (new.high - old.high)
        return _held(node, Interval(low, high))

    def check(self) -> Problems:
        """Check every node, and return all problems in the order of the graph."""
        for name, (node, bounds) in self._moving.items():
            if not bounds.in_32_bits and bounds.inside(COUNTED):
                self._refuse(node, [moving_too_wide(name, bounds.low, bounds.high)])
        for node in self.graph.nodes:
            if node.op == "get_attr":  # lowering refuses it, or it has no elements
                self.bounds[node], self.origins[node] = UNKNOWN, Origin.TRAINED
            elif node.op == "call_function":
                self._visit(node)
        return self.problems

    def _visit(self, node: Node) -> None:
        self.origins[node] = Origin.TRAINED if node.target in RANDOM else Origin.NOTHING
        for operand in node.all_input_nodes:
            self.origins[node] |= self.origins[operand]
        try:
            for index in indices_of(node):
                self._require_allowed(node, index)
            found = bounds_of(node, self.bounds)
            wide = is_integer(node) and not found.in_32_bits
            self.bounds[node] = self._in_32_bits(node, found) if wide else found
        except CaptureError as error:
            self._refuse(node, error.problems)
        except Exception as error:  # a transfer that these operands do not fit
            self._refuse(node, [not_examined(node, error)])

    def _refuse(self, node: Node, problems: Iterable[Problem]) -> None:
        self.problems.add(problems)
        self.bounds[node] = UNKNOWN
        self.origins[node] |= Origin.TRAINED

    def _require_allowed(self, node: Node, index: Index) -> None:
        key = (index.node, index.allowed, index.ignored)
        if key in self.checked:
            return
        self.checked.add(key)
        x = self.bounds[index.node]
        if x == UNKNOWN or index.allows(x.low, x.high) or self._all_drawn_are_allowed(index, x):
            return
        origin = self.origins[index.node]
        if origin & Origin.TRAINED:
            return
        if origin & Origin.COUNTERS:
            raise CaptureError([index_unbounded(node, index, x.low, x.high, self._named(index.node))])
        found = self.rows.find(index.node, index.wrong)
        if found.wrong is not None:
            where = self._named(index.node, found)
            raise CaptureError([index_out_of_range(node, index, found.wrong, where)])
        if found.bounds is None:
            raise CaptureError([index_unbounded(node, index, x.low, x.high, self._named(index.node))])

    def _all_drawn_are_allowed(self, index: Index, x: Interval) -> bool:
        """Whether the index's elements are taken unchanged from tensors and numbers, and all of these contain
        only allowed indices.
        """
        return x.drawn is not None and not any(
            bool(index.wrong(torch.tensor(each) if isinstance(each, int) else self.leaves[each].long()).any())
            for each in x.drawn
        )

    def _in_32_bits(self, node: Node, found: Interval) -> Interval:
        """Bounds of a node's integers, given that the bounds `found` exceed 32 bits.

        The result is UNKNOWN if the operation has no transfer, or if an integer operand is UNKNOWN.
        Otherwise, if the integers depend only on the dataset and constants, the dataset's rows are run to
        find narrower bounds. If none are found, the result is UNKNOWN for integers that come from floats of
        unknown size. Raises `CaptureError` in two cases: a row gives an integer beyond 32 bits, other than
        `OF_NO_NUMBER` from a float; or integers that do not come from such floats may exceed 32 bits.
        """
        whole = [operand for operand in node.all_input_nodes if is_integer(operand)]
        if node.target not in TRANSFERS or any(self.bounds[operand] == UNKNOWN for operand in whole):
            return UNKNOWN
        of_floats = len(whole) < len(node.all_input_nodes) and found == UNKNOWN
        if self.origins[node] in (Origin.NOTHING, Origin.DATASET):
            rows = self.rows.find(node, lambda values: (values < FULL.low) | (values > FULL.high))
            if of_floats and rows.wrong == OF_NO_NUMBER:
                return UNKNOWN
            if rows.wrong is not None:
                raise CaptureError([too_wide(node, rows.wrong, self._named(node, rows))])
            if rows.bounds is not None:
                return rows.bounds
        if of_floats:
            return UNKNOWN
        raise CaptureError([may_be_too_wide(node, found.low, found.high, self._named(node))])

    def _named(self, node: Node, found: Found | None = None) -> str:
        """A description of where a node's elements come from, with the row if `found` has one."""
        above = self.rows.above(node)
        names = ", ".join(name for holder, name in self.names.items() if holder in above)
        if found is not None:
            return "a constant" if found.row is None else f"row {found.row} of dataset tensor {names}"
        if self.origins[node] & Origin.COUNTERS:
            return "a buffer that the step writes"
        return f"dataset tensor {names}" if names else "a constant"


def _held(node: Node, bounds: Interval) -> Interval:
    """Bounds of what the buffer `node` holds, given those of the numbers written to it. Types narrower than int64
    wrap.
    """
    dtype = node.meta["val"].dtype
    return bounds if dtype in (torch.bool, torch.int64) else wrapped(bounds, dtype)
