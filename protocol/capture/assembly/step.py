"""The step program: draw a batch, run the traced graph on it, update every parameter, count the step.

Inputs are the state (`assembly.state`), the dataset and the constants, in this order; outputs are the next state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.capture.analysis.roles import Roles
from protocol.capture.assembly.batch import draw
from protocol.capture.assembly.history import noted
from protocol.capture.assembly.micro_batches import mean_over_units
from protocol.capture.assembly.state import KEY, STEP, metric_names, metrics_of, state_types
from protocol.capture.lowering.context import Draw, Lowering
from protocol.capture.lowering.lower import lower
from protocol.capture.lowering.views import View
from protocol.capture.optimisers.update import Update
from protocol.capture.streams import FIRST_UPDATE_STREAM
from protocol.capture.tracing.tracer import TracedStep
from protocol.capture.types import tensor_type
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.program import Program
from protocol.program.step import HISTORY
from protocol.program.types import TensorType


@dataclass(frozen=True)
class Assembled:
    """The program, the types of the state's tensors by name and in order, and how often each ATen operation became
    what (`result.Coverage`).

    `with_gradients` is the program with more outputs, the gradients in the parameters' order before any clipping;
    `draws` tells how random draws are drawn, by the name of their node in the traced graph.
    """

    program: Program
    state: Mapping[str, TensorType]
    coverage: Mapping[tuple[str, str], int]
    with_gradients: Program
    draws: Mapping[str, Draw]


def assemble(
    traced: TracedStep,
    roles: Roles,
    update: Update,
    parameters: Mapping[str, Tensor],
    dataset: Mapping[str, Tensor],
    constants: Mapping[str, Tensor],
    rates: Sequence[str],
    batch_size: int,
    micro_batches: int = 1,
    replacement: bool = True,
    history: int = 0,
) -> Assembled:
    """Write the program.

    `constants` holds, by name, the buffers that are only read and one learning-rate table per parameter group; `rates`
    are the names of these tables. `traced` is a step on one of `micro_batches` equal parts of the batch, whose rows are
    drawn with or without `replacement`; the state keeps the metrics of `history` steps. Raises `CaptureError` with all
    unsupported operations, or for tensors of the same name.
    """
    b = Builder("step")
    types = state_types(traced, update, parameters, constants, history)
    state = {name: b.input(type_) for name, type_ in types.items()}
    data = {name: b.input(tensor_type(t)) for name, t in dataset.items()}
    fixed = {name: b.input(tensor_type(t)) for name, t in constants.items()}

    index = draw(b, data, state[KEY], state[STEP], batch_size, replacement)
    coverage: Counter[tuple[str, str]] = Counter()
    draws: dict[str, Draw] = {}

    def evaluate(
        b: Builder, given: Sequence[Value], batch: Sequence[Value], key: Value, counter: Value
    ) -> Sequence[Value]:
        lowering = Lowering(b, roles, key, counter)
        results = lower(lowering, traced.graph, [View.of(value) for value in (*given, *batch)])
        coverage.update(lowering.coverage)
        draws.update(lowering.draws)
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
    lowering = Lowering(b, roles, state[KEY], state[STEP], FIRST_UPDATE_STREAM)
    after = update.write(lowering, state, dict(zip(traced.parameters, values[:count])), rate)
    coverage.update(lowering.coverage)
    after[STEP] = b.add(state[STEP], b.constant(DType.U32, (), 1))
    after[KEY] = state[KEY]
    metrics = metric_names(traced)
    after.update((name, b.reshape(value, ())) for name, value in zip(metrics, values[count:]))
    after.update(zip(traced.written, values[count + len(metrics) :], strict=True))
    if history:
        measured = [after[name] for name in metrics_of(traced, update)]
        after[HISTORY] = noted(b, state[HISTORY], measured, entry)
    for name in types:
        b.output(after[name])
    program = b.build()
    for gradient in values[:count]:
        b.output(gradient)
    return Assembled(program, types, coverage, b.build(), draws)
