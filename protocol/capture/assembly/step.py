"""Writes the step program: it draws a batch, runs each part's traced graph and update, and increments the
step.

Inputs are the state (`assembly.state`), the dataset and the constants, in this order; outputs are the next
state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.capture.assembly.accumulation import accumulated
from protocol.capture.assembly.batch import Drawing
from protocol.capture.assembly.history import noted
from protocol.capture.assembly.micro_batches import Accumulated, mean_over_units
from protocol.capture.assembly.part import Part
from protocol.capture.assembly.state import KEY, STEP, metrics_of, state_types
from protocol.capture.lowering.context import Draw, Lowering
from protocol.capture.lowering.lower import lower
from protocol.capture.lowering.views import View
from protocol.capture.types import tensor_type
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.integers import quotient
from protocol.program.program import Program
from protocol.program.step import HISTORY
from protocol.program.types import TensorType


@dataclass(frozen=True)
class Assembled:
    """The program, and the types of the state's tensors by name and in order. `coverage` counts what each
    ATen operation was lowered to (`result.Coverage`).

    `with_gradients` is the program with additional outputs: the gradients of all parts, in the order of their
    parameters, before any clipping. `draws` holds one mapping per part. The keys are names of nodes in the
    part's traced graph; the values tell how the random numbers of each node are drawn.
    """

    program: Program
    state: Mapping[str, TensorType]
    coverage: Mapping[tuple[str, str], int]
    with_gradients: Program
    draws: Sequence[Mapping[str, Draw]]


def assemble(
    parts: Sequence[Part],
    parameters: Mapping[str, Tensor],
    dataset: Mapping[str, Tensor],
    constants: Mapping[str, Tensor],
    drawing: Drawing,
    history: int = 0,
) -> Assembled:
    """Write the step program.

    `constants` holds, by name, the tensors that are only read (such as buffers and frozen parameters) and one
    learning-rate table per parameter group. Each traced graph computes one micro-batch. The state keeps the
    metrics of the last `history` steps. Raises `CaptureError` if two tensors have the same name. Also raises
    it if a part has unsupported operations, and then lists all unsupported operations of the first such part.
    """
    b = Builder("step")
    types = state_types(parts, parameters, constants, history)
    known = {name: b.input(type_) for name, type_ in types.items()}
    data = {name: b.input(tensor_type(t)) for name, t in dataset.items()}
    known |= {name: b.input(tensor_type(t)) for name, t in constants.items()}
    step, key = known[STEP], known[KEY]
    index = drawing.draw(b, data, key, step)
    rows = tuple(data.values())
    written = [_Written(b, part, known, rows, index, drawing.micro_batches) for part in parts]
    known[STEP] = b.add(step, b.constant(DType.U32, (), 1))
    for part in written:
        part.measure(b, known)
    if history:
        measured = [known[name] for name in metrics_of(parts)]
        known[HISTORY] = noted(b, known[HISTORY], measured, b.cast(step, DType.I32))
    for name in types:
        b.output(known[name])
    program = b.build()
    for part in written:
        for gradient in part.gradients:
            b.output(gradient)
    coverage = sum((part.coverage for part in written), Counter[tuple[str, str]]())
    return Assembled(program, types, coverage, b.build(), [part.draws for part in written])


class _Written:
    """Writes one part into the program. `known` maps names to current values; the values that the part
    changes are replaced there. The loss and the objective's metrics are replaced later, by `measure`.
    """

    def __init__(
        self,
        b: Builder,
        part: Part,
        known: dict[str, Value],
        rows: Sequence[Value],
        index: Value,
        micro_batches: int,
    ) -> None:
        self._part = part
        self.coverage: Counter[tuple[str, str]] = Counter()
        self.draws: dict[str, Draw] = {}
        traced = part.traced
        given = [known[name] for name in (*traced.parameters, *traced.buffers)]
        keys = known[KEY], known[STEP]
        if micro_batches == 1:
            values = self._evaluate(b, given, [b.gather(tensor, index) for tensor in rows], *keys)
        else:
            sums = _accumulated(part)
            values = mean_over_units(b, self._evaluate, given, rows, index, *keys, micro_batches, sums)
        count = len(traced.parameters)
        self.gradients = values[:count]
        last = count + len(part.measured)
        self._metrics = dict(zip(part.measured, values[count:last], strict=True))
        own, times = known[STEP], b.cast(known[STEP], DType.I32)
        self._acts: Value | None = None
        if not part.always:
            times, self._acts = _schedule(b, part, times)
            own = b.cast(times, DType.U32)
        lowering = Lowering(b, part.roles, known[KEY], own, part.streams[1])
        rates = [b.gather(known[name], times) for name in part.rates]
        updated = part.update.write(lowering, known, dict(zip(traced.parameters, self.gradients)), rates)
        self.coverage.update(lowering.coverage)
        names = {name: part.metric(name) for name in part.update.metrics}
        updated = {names.get(name, name): value for name, value in updated.items()}
        self._replace(b, known, updated | dict(zip(traced.written, values[last:], strict=True)))

    def measure(self, b: Builder, known: dict[str, Value]) -> None:
        """Write the loss and the objective's metrics to `known`."""
        self._replace(b, known, {name: b.reshape(x, ()) for name, x in self._metrics.items()})

    def _replace(self, b: Builder, known: dict[str, Value], after: Mapping[str, Value]) -> None:
        """Write the values `after` to `known`. In steps in which the part does not act, the program keeps the
        values that `known` held before.
        """
        for name, value in after.items():
            known[name] = value if self._acts is None else b.select(self._acts, value, known[name])

    def _evaluate(
        self, b: Builder, given: Sequence[Value], batch: Sequence[Value], key: Value, counter: Value
    ) -> Sequence[Value]:
        lowering = Lowering(b, self._part.roles, key, counter, self._part.streams[0])
        results = lower(lowering, self._part.traced.graph, [View.of(value) for value in (*given, *batch)])
        self.coverage.update(lowering.coverage)
        self.draws.update(lowering.draws)
        return [lowering.elements(result) for result in results]


def _accumulated(part: Part) -> dict[int, Accumulated]:
    """The accumulated buffers of a part, by their position among its results."""
    traced = part.traced
    names = (*traced.parameters, *traced.buffers)
    first = len(traced.parameters) + len(part.measured)
    shares = accumulated(traced)
    return {
        first + k: Accumulated(names.index(name), shares[name])
        for k, name in enumerate(traced.written)
        if name in shares
    }


def _schedule(b: Builder, part: Part, step: Value) -> tuple[Value, Value]:
    """How often the part has acted before this step (i32), and whether it acts in this step. The number is
    correct only if the part acts in this step.
    """
    since = b.sub(step, b.i32(part.first))
    times = quotient(b, since, part.every)
    on_time = b.eq(b.mul(times, b.i32(part.every)), since)
    return times, b.and_(on_time, b.le(b.i32(0), since))
