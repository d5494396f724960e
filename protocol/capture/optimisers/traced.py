"""The update of any optimiser, traced like the model: its `step` runs on fake tensors, and the graph is
lowered.

The rates and the optimiser's state are inputs of the graph; numbers that a step changes become tensors. To
find the initial state, the first step is run and the values that it stores are recorded. If these values
depend on gradients, as with a momentum that starts as the first gradient, the first step has a separate
graph. Finally, the graphs and the optimiser itself both run for a few steps, and their results must agree
(`MOST_ERROR`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx import Graph, GraphModule, Interpreter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.optim import Optimizer

from protocol.capture.analysis.roles import OPERANDS, Role, Roles
from protocol.capture.errors import CaptureError, Problem
from protocol.capture.expansion.expand import expand
from protocol.capture.inputs.model import with_attributes
from protocol.capture.inputs.python_values import LEAVES
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.lower import lower
from protocol.capture.lowering.rules import RULES
from protocol.capture.lowering.views import View
from protocol.capture.optimisers.checks import (
    computes_otherwise,
    draws,
    makes_a_tensor,
    outside_state,
    reads_numbers,
    removed_early,
    stored_late,
)
from protocol.capture.optimisers.numbers import tensors_as_numbers
from protocol.capture.optimisers.schedules import rate_of
from protocol.capture.optimisers.trial import Kept, Noting, Trial, left_as_it_was, require_unchanged
from protocol.capture.tracing.assigned import Copied
from protocol.capture.tracing.checks import raised
from protocol.capture.tracing.sources import SourceRecorder, source_of, source_of_error, traceback_of
from protocol.capture.tracing.step import compiling, silent_failures
from protocol.capture.tracing.tracer import DATA_DEPENDENT
from protocol.capture.types import as_committed, tensor_type
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.types import TensorType

STEPS = 4
"""The number of steps after which the traced update's parameters are compared with those of the optimiser itself."""
MOST_ERROR = 1e-3
"""The largest allowed error of a parameter, relative to how far it moves in `STEPS` steps."""
MOST_ERROR_OF_LESS_EXACT = 0.1
"""`MOST_ERROR` for an optimiser that computes in bfloat16 or float16."""
STAND_IN = 1e-5
"""Rates smaller than this are replaced by it while an update is traced and compared."""
SEED = 7
MISSING: Final = object()
"""Stands for the value of a key that the state does not have yet."""


@dataclass(frozen=True)
class Entry:
    """What the optimiser stores for a parameter under a key: a tensor, or a number that changes. `first` is
    its value before the first step.
    """

    parameter: str
    key: str
    first: Tensor

    @property
    def name(self) -> str:
        """The entry's name in the state."""
        return f"{self.parameter}.{self.key}"


@dataclass(frozen=True)
class Traced:
    """An optimiser's update, recorded as graphs. The placeholders of a graph are the parameters, then the
    gradients, the state entries and the rates; its outputs are the new parameters, then the new entries.
    `first`, if there is one, is used only for the first step and has no placeholders for entries.
    """

    parameters: tuple[str, ...]
    entries: tuple[Entry, ...]
    graph: Graph
    first: Graph | None

    @property
    def initial(self) -> Mapping[str, Tensor]:
        """Implements `rule.Rule.initial`."""
        return {entry.name: as_committed(entry.first) for entry in self.entries}

    def state(self, parameters: Mapping[str, TensorType]) -> list[tuple[str, TensorType]]:  # noqa: ARG002
        """Implements `rule.Rule.state`."""
        return [(entry.name, tensor_type(as_committed(entry.first))) for entry in self.entries]

    def write(
        self,
        lowering: Lowering,
        state: Mapping[str, Value],
        gradients: Mapping[str, Value],
        rates: Sequence[Value],
    ) -> dict[str, Value]:
        """Implements `rule.Rule.write`."""
        b = lowering.builder
        names = (*self.parameters, *(entry.name for entry in self.entries))
        given = [state[name] for name in self.parameters], [gradients[name] for name in self.parameters]
        kept = [state[entry.name] for entry in self.entries]
        after = self._lowered(lowering, self.graph, (*given[0], *given[1], *kept, *rates))
        if self.first is not None:
            begun = self._lowered(lowering, self.first, (*given[0], *given[1], *rates))
            is_first = b.eq(lowering.step, b.constant(DType.U32, (), 0))
            after = [b.select(is_first, one, other) for one, other in zip(begun, after, strict=True)]
        return dict(zip(names, after, strict=True))

    @staticmethod
    def _lowered(lowering: Lowering, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        contractions = [node for node in graph.nodes if node.target in OPERANDS]
        before = lowering.roles
        of_update = dict.fromkeys(contractions, Role.UPDATE)
        lowering.roles = Roles(before.table, frozenset(), of_update, frozenset())
        try:
            return [
                lowering.elements(x) for x in lower(lowering, graph, [View.of(value) for value in inputs])
            ]
        finally:
            lowering.roles = before


def trace_update(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> Traced:
    """Trace and return the update of `parameters`, which maps names to parameters. Raises `CaptureError` unless the
    update is a function of parameters, gradients, rates and state. The optimiser is restored.
    """
    with left_as_it_was(optimizer) as before:
        with _moving(optimizer):
            tracer = _Tracer(optimizer, parameters)
            entries, begins = tracer.entries()
            graph = tracer.traced(entries)
            first = tracer.traced(entries, first=True) if begins else None
            found = Traced(tuple(parameters), entries, graph, first)
            tracer.require_same(found)
        require_unchanged(optimizer, before)
        return found


@contextmanager
def _moving(optimizer: Optimizer) -> Iterator[None]:
    """Inside the context, use `STAND_IN` in place of each rate that is too small to move a float32, so that
    updates can be compared. In a warm-up, for example, the rate of the first step may be 0.
    """
    rates = [(group, group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]
    try:
        for group, rate in rates:
            if abs(float(rate)) < STAND_IN:
                group["lr"] = torch.full_like(rate, STAND_IN) if isinstance(rate, Tensor) else STAND_IN
        yield
    finally:
        for group, rate in rates:
            group["lr"] = rate


class _Tracer:
    """Runs an optimiser's step, both on its real parameters with made-up gradients and on fake tensors in
    their place.
    """

    def __init__(self, optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        self._groups = [dict(group) for group in optimizer.param_groups]
        self._names = [
            [name for p in group["params"] for name, own in parameters.items() if own is p]
            for group in self._groups
        ]
        self._constants: dict[tuple[str, str], Any] = {}
        self._is_less_exact = False

    def entries(self) -> tuple[tuple[Entry, ...], bool]:
        """The optimiser's entries, and whether its first step needs a separate graph. This is the case if the
        first step stores something that depends on gradients, or a number that only later steps change.
        """
        runs = [self._first_steps(seed) for seed in (SEED, SEED + 1)]
        found, begins = [], False
        for (name, key), (first, *after) in runs[0].items():
            if len(after) < 2:
                raise CaptureError([removed_early(self._optimizer, key, name)])
            if after[0] is MISSING:
                raise CaptureError([stored_late(self._optimizer, key, name)])
            again = runs[1].get((name, key), [None])[0]
            if not all(isinstance(value, Tensor) or _is_constant(value) for value in (first, again, *after)):
                raise CaptureError([self._changes(name, key, first)])
            if isinstance(first, Tensor) and isinstance(again, Tensor):
                depends = not torch.equal(first, again)
                found.append(Entry(name, key, torch.zeros_like(first) if depends else first))
                begins |= depends
            elif _is_number(first) and (first != again or set(after) != {first}):
                found.append(Entry(name, key, torch.tensor(float(first))))
                begins |= first != again or after[0] == first
            elif any(value is not first and value != first for value in (again, *after)):
                raise CaptureError([self._changes(name, key, first)])
            else:
                self._constants[name, key] = first
        return tuple(found), begins

    def traced(self, entries: Sequence[Entry], first: bool = False) -> Graph:
        """The graph that all steps share or, if `first`, the one that replaces it in the first step."""
        recorder = SourceRecorder()

        def run(p: list[Tensor], g: list[Tensor], s: list[Tensor], r: list[Tensor]) -> list[Tensor]:
            with FunctionalTensorMode():
                p, g, s, r = (_functional(given) for given in (p, g, s, r))
                kept: dict[str, Kept] = {name: {} for name in self._parameters}
                if not first:
                    for (name, key), value in self._constants.items():
                        kept[name][key] = value
                    for entry, value in zip(entries, s, strict=True):
                        kept[entry.parameter][entry.key] = value
                with recorder, compiling(), Copied([*p, *g]), tensors_as_numbers(self._optimizer):
                    after = self._on_fakes(p, g, kept, r)
                values = [*p, *(after[entry.parameter][entry.key] for entry in entries)]
                return [_contents(x, t) for x, t in zip(values, (*p, *(e.first for e in entries)))]

        tensors = [_in_float32(p) for p in self._parameters.values()]
        begun = [] if first else [entry.first for entry in entries]
        given = tensors, [torch.zeros_like(t) for t in tensors], begun, self._rates()
        try:
            with silent_failures():
                graph = make_fx(run, tracing_mode="fake")(*given).graph
        except DATA_DEPENDENT as error:
            raise CaptureError([reads_numbers(self._optimizer, source_of_error(error))]) from error
        except CaptureError:
            if not recorder.problems:
                raise
        except Exception as error:
            raise CaptureError([raised(error, source_of_error(error), traceback_of(error))]) from error
        if recorder.problems:
            raise CaptureError([reads_numbers(self._optimizer, each.source) for each in recorder.problems])
        for node in reversed(graph.nodes):
            of_profiler = isinstance(node.target, OpOverload) and node.target.namespace == "profiler"
            made = node.op == "get_attr" or node.target is torch.ops.aten.lift_fresh_copy.default
            if of_profiler or (made and not node.users):  # torch puts the former around every step
                graph.erase_node(node)
        for node in graph.nodes:
            if isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
                raise CaptureError([draws(self._optimizer, str(node.target), source_of(node))])
        for node in graph.nodes:
            if node.op == "get_attr":
                source = next(filter(None, map(source_of, (node, *node.users))), "")
                raise CaptureError([makes_a_tensor(self._optimizer, source)])
        expand(graph, RULES.__contains__)
        return graph

    def require_same(self, found: Traced) -> None:
        """Run graphs and optimiser on the same gradients. Raises `CaptureError` if their parameters differ
        too much.
        """
        generator = torch.Generator().manual_seed(SEED + 2)
        parameters = list(self._parameters.values())
        begun = [_in_float32(p) for p in parameters]
        ours, state = begun, [entry.first.clone() for entry in found.entries]
        with Trial(self._optimizer) as trial:
            for step in range(STEPS):
                g = [torch.randn(p.shape, generator=generator) for p in parameters]
                trial.step(parameters, g)
                begins = found.first if step == 0 else None
                module = Interpreter(GraphModule(nn.Module(), begins or found.graph))
                given = (*ours, *g, *(() if begins else state), *self._rates())
                with torch.no_grad():
                    after = module.run(*given, enable_io_processing=False)
                ours, state = list(after[: len(ours)]), list(after[len(ours) :])
            theirs = [_in_float32(p) for p in parameters]
        for name, before, one, other in zip(self._parameters, begun, ours, theirs, strict=True):
            moved = float((other - before).double().norm())
            error = float((one - other).double().norm()) / (moved or 1.0)
            if not error <= (MOST_ERROR_OF_LESS_EXACT if self._is_less_exact else MOST_ERROR):
                raise CaptureError([computes_otherwise(self._optimizer, name, error)])

    def _changes(self, name: str, key: str, value: Any) -> Problem:
        return outside_state(self._optimizer, f"{key} of {name}, a {type(value).__name__},")

    def _first_steps(self, seed: int) -> dict[tuple[str, str], list[Any]]:
        """By parameter and key: the first value stored, then the values after the first and second step. If a
        key is missing after the first step, `MISSING` is in the place of its value. If it is missing after the
        second, there is one value fewer.
        """
        generator = torch.Generator().manual_seed(seed)
        parameters = list(self._parameters.values())
        found: dict[tuple[str, str], list[Any]] = {}
        with Trial(self._optimizer) as trial:
            for step in range(2):
                trial.step(parameters, [torch.randn(p.shape, generator=generator) for p in parameters])
                for name, p in self._parameters.items():
                    kept = trial.states.get(p, Noting({}))
                    for key, value in kept.items():
                        if step == 0:
                            found[name, key] = [kept.first[key], _copy(value)]
                        else:
                            found.setdefault((name, key), [kept.first[key], MISSING]).append(_copy(value))
        self._is_less_exact |= trial.less_exact
        return found

    def _on_fakes(
        self,
        tensors: Sequence[Tensor],
        gradients: Sequence[Tensor],
        kept: Mapping[str, Kept],
        rates: Sequence[Tensor],
    ) -> dict[str, Kept]:
        """Run one step with `tensors` in place of the parameters, and return each parameter's new state."""
        optimizer, by_name = self._optimizer, {}
        for (name, p), t, g in zip(self._parameters.items(), tensors, gradients, strict=True):
            by_name[name] = with_attributes(t, p).requires_grad_()
            t.grad = g
        state: defaultdict[Tensor, Any] = defaultdict(_nothing)
        state.update((by_name[name], each) for name, each in kept.items() if each)
        groups = []
        for group, names, rate in zip(self._groups, self._names, rates, strict=True):
            changed: dict[str, Any] = {key: False for key in ("foreach", "fused") if key in group}
            changed |= {key: True for key in ("capturable",) if key in group}
            changed |= {"lr": rate} if group.get("lr") is not None else {}
            groups.append({**group, **changed, "params": [by_name[name] for name in names]})
        held = optimizer.state, optimizer.param_groups
        optimizer.state, optimizer.param_groups = state, groups
        try:
            with torch.no_grad():
                optimizer.step()
        finally:
            optimizer.state, optimizer.param_groups = held
        return {name: state[t] for name, t in by_name.items()}

    def _rates(self) -> list[Tensor]:
        return [torch.tensor(rate_of(group)) for group in self._groups]


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def _is_constant(x: Any) -> bool:
    """Whether a value that is not a tensor is known never to change in place. Such values are numbers, texts,
    bytes, None, torch dtypes and devices, and tuples of such values.
    """
    if isinstance(x, tuple):
        return all(map(_is_constant, x))
    return isinstance(x, (*LEAVES, torch.dtype, torch.device))


def _copy(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, Tensor) else x


def _nothing() -> Kept:
    return {}


def _in_float32(p: Tensor) -> Tensor:
    """A float32 copy of a parameter. Types other than float32 are not refused here, but in `inputs.checks`."""
    return p.detach().float().clone()


def _functional(tensors: list[Tensor]) -> list[Tensor]:
    return [FunctionalTensor.to_functional(t) for t in tensors]


def _contents(x: Any, like: Tensor) -> Tensor:
    """Converts `x`, a number or a tensor, to a tensor with the type and shape of `like`. If `x` is a
    functional tensor, the result is its content after all writes.
    """
    t = x if isinstance(x, Tensor) else torch.full((), x, dtype=like.dtype)
    if isinstance(t, FunctionalTensor):
        torch._sync(t)  # type: ignore[attr-defined, no-untyped-call]
        t = torch._from_functional_tensor(t.elem)
    return t.to(like.dtype).view(like.shape)
