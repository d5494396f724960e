"""The step program: draw a batch, run the traced graph on it, update every parameter, count the step.

Inputs are the state, the dataset, the constants, in this order; outputs are the state (encoding.md section 4):
parameters, the optimiser's own, the buffers that the model writes (int64 counters as i32), `step` (u32), `key`
(u32 [2]), then `metric.loss` and the objective's other metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protocol.capture import ops  # noqa: F401 - registers the rules
from protocol.capture.datasets import draw
from protocol.capture.errors import CaptureError, Problem
from protocol.capture.graph import TracedStep
from protocol.capture.lowering import Lowering, lower
from protocol.capture.roles import Bits, Role, roles_of
from protocol.capture.units import mean_over_units
from protocol.capture.update import Update
from protocol.capture.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.program import Program
from protocol.program.step import METRIC
from protocol.program.types import TensorType

STEP = "step"
KEY = "key"


@dataclass(frozen=True)
class Assembled:
    """The program and the state's types by name, in its order. `coverage` counts (ATen op, what it became)."""

    program: Program
    state: Mapping[str, TensorType]
    coverage: Mapping[tuple[str, str], int]


def assemble(
    traced: TracedStep,
    update: Update,
    parameters: Mapping[str, Tensor],
    dataset: Mapping[str, Tensor],
    constants: Mapping[str, Tensor],
    rates: Sequence[str],
    batch_size: int,
    table: Mapping[Role, Bits],
    micro_batches: int = 1,
) -> Assembled:
    """Write the program. `constants` holds the buffers that are only read by name and, under the names `rates`, one
    learning-rate table per parameter group; `table` what contractions take. `traced` is a step on one of
    `micro_batches` equal parts of the batch (`units`). Raises `CaptureError` with all unsupported operations."""
    b = Builder("step")
    types = _state_types(traced, update, parameters, constants)
    state = {name: b.input(type_) for name, type_ in types.items()}
    data = {name: b.input(_type_of(t)) for name, t in dataset.items()}
    fixed = {name: b.input(_type_of(t)) for name, t in constants.items()}

    index = draw(b, data, state[KEY], state[STEP], batch_size)
    roles = roles_of(traced.graph, len(traced.parameters), len(traced.buffers), table)
    coverage: Counter[tuple[str, str]] = Counter()

    def evaluate(
        b: Builder, given: Sequence[Value], batch: Sequence[Value], key: Value, counter: Value
    ) -> Sequence[Value]:
        lowering = Lowering(b, roles, key, counter)
        results = lower(lowering, traced.graph, [View.of(value) for value in (*given, *batch)])
        coverage.update(lowering.coverage)
        return [lowering.elements(result) for result in results]

    known = state | fixed
    given = [known[name] for name in (*traced.parameters, *traced.buffers)]
    if micro_batches == 1:
        batch = [b.gather(tensor, index) for tensor in data.values()]
        values = evaluate(b, given, batch, state[KEY], state[STEP])
    else:
        rows = tuple(data.values())
        values = mean_over_units(b, evaluate, given, rows, index, state[KEY], state[STEP], micro_batches)
    count = len(traced.parameters)

    entry = b.cast(state[STEP], DType.I32)
    rate = [b.gather(fixed[name], entry) for name in rates]
    after = update.write(b, state, dict(zip(traced.parameters, values[:count])), rate)
    after[STEP] = b.add(state[STEP], b.constant(DType.U32, (), 1))
    after[KEY] = state[KEY]
    metrics = _metrics(traced)
    after.update((name, b.reshape(value, ())) for name, value in zip(metrics, values[count:]))
    after.update(zip(traced.written, values[count + len(metrics) :], strict=True))
    for name in types:
        b.output(after[name])
    return Assembled(b.build(), types, coverage)


def initial_tensors(assembled: Assembled, of_model: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state before the first step: the model's parameters and written buffers, `of_model`, and zeros."""
    tensors = {
        name: torch.zeros(type_.shape, dtype=type_.dtype.storage) for name, type_ in assembled.state.items()
    }
    return tensors | {name: t.clone() for name, t in of_model.items()}


def _state_types(
    traced: TracedStep, update: Update, parameters: Mapping[str, Tensor], constants: Collection[str]
) -> dict[str, TensorType]:
    """Types of the state's tensors, in order. Raises `CaptureError` unless all names, `constants` too, are distinct."""
    trained = {name: _type_of(p) for name, p in parameters.items()}
    scalar = TensorType(DType.F32, ())
    types = [
        *trained.items(),
        *update.state(trained),
        *((name, _type_of(traced.buffers[name])) for name in traced.written),
        (STEP, TensorType(DType.U32, ())),
        (KEY, TensorType(DType.U32, (2,))),
        *((name, scalar) for name in (*_metrics(traced), *update.metrics)),
    ]
    uses = Counter([name for name, _ in types] + list(constants))
    taken = [name for name, count in uses.items() if count > 1]
    if taken:
        what = f"several tensors of the task would be called {', '.join(taken)}"
        remedy = "rename the model's parameter or buffer, or the objective's metric, of this name"
        raise CaptureError([Problem(what, remedy)])
    return dict(types)


def _metrics(traced: TracedStep) -> list[str]:
    return [METRIC + name for name in ("loss", *traced.metrics)]


def _type_of(t: Tensor) -> TensorType:
    kinds = {torch.float32: DType.F32, torch.uint8: DType.U8, torch.int32: DType.I32, torch.bool: DType.BOOL}
    return TensorType(kinds[t.dtype], tuple(t.shape))
