"""The stages of `capture` in order, and the one error with everything that any of them refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.analysis.ranges import require_ranges
from protocol.capture.analysis.roles import Bits, roles_of, table_of
from protocol.capture.assembly.checks import within_limits
from protocol.capture.assembly.state import buffers_of, initial_tensors, measured_by, resumed
from protocol.capture.assembly.step import assemble
from protocol.capture.errors import Problem, Problems
from protocol.capture.expansion.distinct import mark_distinct
from protocol.capture.expansion.expand import expand
from protocol.capture.inputs.checks import (
    not_watched,
    require_code,
    require_counts,
    require_enough_rows,
    require_equal_parts,
    require_separate_memory_and_no_hooks,
    require_types,
)
from protocol.capture.inputs.dataset import committed, example_batch
from protocol.capture.inputs.python_state import PythonState, left_as_it_was
from protocol.capture.lowering.lower import without_rule
from protocol.capture.lowering.rules import RULES
from protocol.capture.optimisers.checks import require_optimizer
from protocol.capture.optimisers.schedules import as_in_another_step, learning_rates
from protocol.capture.optimisers.update import update_of
from protocol.capture.preflight.repeat import moved, traced_otherwise
from protocol.capture.preflight.run import Preflight
from protocol.capture.result import CapturedStep
from protocol.capture.tracing.checks import TraceError, left_untouched, unvalidated
from protocol.capture.tracing.step import Objective
from protocol.capture.tracing.tracer import TracedStep, as_torch_raises, constants_of, is_traced, trace_step
from protocol.capture.types import as_committed
from protocol.program.step import State, StepProgram


def capture(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    dataset: Mapping[str, Tensor],
    *,
    batch_size: int,
    steps: int,
    scheduler: LRScheduler | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    bits: Mapping[str, Bits] | None = None,
    micro_batches: int = 1,
    replacement: bool = True,
    history: int = 0,
    resume: State | None = None,
    preflight: bool = True,
) -> CapturedStep:
    """Capture one training step of `model`.

    `objective(model, batch)` returns the f32 scalar loss, or the loss and a dict of f32 scalar metrics. `batch` holds
    `batch_size` rows of every tensor of `dataset`, drawn inside the program; integers arrive as int64. They are drawn
    with replacement; with `replacement=False` as a `DataLoader` with `shuffle` and `drop_last` does: in epochs, each in
    an order of its own, without the rows that fill no batch.
    `optimizer` is any `torch.optim.Optimizer` over the model's parameters (`optimisers`); its rates, or those of
    `scheduler`, become a table of `steps` entries. `clip_norm` and `clip_value` limit the gradients as
    `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` do, in this order; with the former, the norm before it is
    the metric `grad_norm`. `bits` replaces rows of the contraction table by role, as in {"vocabulary": (13, 13)}
    (`analysis.roles`). Buffers that the step writes are part of the state; frozen parameters, those that the loss
    does not reach and other buffers become constants.

    With `micro_batches` the batch is divided into so many equal parts, each a unit with a forward and backward pass of
    its own; gradients, loss, metrics and written f32 buffers are means over the units (`assembly.micro_batches`). It
    takes the activations of one unit, and up to so many processes can share a step.

    The state has loss and metrics of the last step; with `history` also those of so many last steps, which
    `step_program.history(state)` gives as a table.

    `resume` is the final state of an earlier task of the same model and kind of optimiser: training goes on from its
    parameters, written buffers and optimiser's state. Steps and rates count from 0 again, so `scheduler` says how it
    goes on; the task needs another seed, or it draws the same batches.

    The `preflight` traces the step twice and compares a few steps with torch's (`preflight`); without it, a step that
    changes from time to time is captured as it is the first time. Model and objective are left as they were. Raises one
    `CaptureError` with every reason.
    """
    require_code(model, objective)
    options = _Options(
        batch_size=batch_size,
        steps=steps,
        scheduler=scheduler,
        clip_norm=clip_norm,
        clip_value=clip_value,
        bits=bits or {},
        micro_batches=micro_batches,
        replacement=replacement,
        history=history,
        resume=resume,
        preflight=preflight,
    )
    with left_as_it_was(model, objective) as kept:
        return _captured(model, objective, optimizer, dataset, options, kept)


@dataclass(frozen=True, kw_only=True)
class _Options:
    """What `capture` is told besides model, objective, optimiser and dataset."""

    batch_size: int
    steps: int
    scheduler: LRScheduler | None
    clip_norm: float | None
    clip_value: float | None
    bits: Mapping[str, Bits]
    micro_batches: int
    replacement: bool
    history: int
    resume: State | None
    preflight: bool


def _captured(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    dataset: Mapping[str, Tensor],
    told: _Options,
    kept: PythonState,
) -> CapturedStep:
    """`capture`; what Python holds is `kept`."""
    problems = Problems()
    with problems.collected():
        require_counts(batch_size=told.batch_size, steps=told.steps, micro_batches=told.micro_batches)
        if told.history != 0:
            require_counts(history=told.history)
        require_equal_parts(told.batch_size, told.micro_batches)
    batch = None
    counts_refused = bool(problems)
    with problems.collected():
        data = committed(dataset)
        if not counts_refused:
            require_enough_rows(data, told.batch_size, told.replacement)
            batch = example_batch(data, told.batch_size // told.micro_batches)
    model_problems = Problems()
    for require in (require_types, require_separate_memory_and_no_hooks):
        with model_problems.collected():
            require(model)
    problems.add(model_problems)
    traced = None if batch is None else _traced(model, objective, batch, bool(model_problems), kept, problems)
    if told.preflight and traced is not None and batch is not None:
        problems.add(_traced_again(model, objective, batch, traced, kept, optimizer, told.scheduler))
    if traced is not None:
        traced = replace(traced, buffers={**traced.buffers, **buffers_of(told.resume, traced)})
        mark_distinct(traced.graph, constants_of(traced))
        expand(traced.graph, RULES.__contains__)
        with problems.collected():
            require_ranges(traced, data, told.steps)
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    reached = trainable if traced is None else traced.parameters
    with problems.collected():
        require_optimizer(optimizer)
        with problems.collected():
            clips = told.clip_norm, told.clip_value
            update = update_of(optimizer, trainable, reached, *clips, told.resume is not None)
        with problems.collected():
            tables = learning_rates(optimizer, told.scheduler, 1 if counts_refused else told.steps)
    with problems.collected():
        table = table_of(told.bits)
    if problems and traced is not None:
        problems.add(without_rule(traced.graph))
    problems.raise_any()
    assert traced is not None

    rates = {f"learning_rate.{k}": t for k, t in enumerate(tables)}
    parameters = {name: as_committed(trainable[name]) for name in traced.parameters}
    written = {name: traced.buffers[name] for name in traced.written}
    constants = {name: t for name, t in traced.buffers.items() if name not in written} | rates
    roles = roles_of(traced.graph, len(traced.parameters), len(traced.buffers), table)
    assembled = assemble(
        traced,
        roles,
        update,
        parameters,
        data,
        constants,
        tuple(rates),
        told.batch_size,
        told.micro_batches,
        told.replacement,
        told.history,
    )
    program = StepProgram(assembled.program, tuple(assembled.state), len(data), len(constants))
    with within_limits():
        program.check()
    begun = resumed(assembled.state, measured_by(traced, update), told.resume)
    initial = initial_tensors(assembled.state, parameters | written | dict(update.rule.initial) | begun)
    notes = (*left_untouched(traced.untouched), *unvalidated(traced.distributions), *not_watched(kept))
    captured = CapturedStep(program, data, constants, initial, assembled.coverage, notes)
    if not told.preflight:
        return captured
    counts = told.batch_size, told.micro_batches
    checked = Preflight(model, objective, traced, roles, assembled, captured, *counts, told.replacement)
    report = checked.run()
    return replace(captured, preflight=report, notes=(*notes, *report.notes))


def _traced_again(
    model: nn.Module,
    objective: Objective,
    batch: Mapping[str, Tensor],
    first: TracedStep,
    before: PythonState,
    optimizer: Optimizer,
    scheduler: LRScheduler | None,
) -> list[Problem]:
    """Why the step may not be the same every time: another trace, with other learning rates, differs, or Python's
    values move on."""
    before.restore_holders_of(is_traced)
    between = PythonState(before.roots)
    try:
        with as_in_another_step(optimizer, scheduler):
            second = trace_step(model, objective, batch)
    except TraceError as error:
        return list(error.problems)
    before.restore_holders_of(is_traced)
    changes = moved(between, PythonState(before.roots))
    return changes or [*traced_otherwise(first, second)]


def _traced(
    model: nn.Module,
    objective: Objective,
    batch: Mapping[str, Tensor],
    model_refused: bool,
    kept: PythonState,
    problems: Problems,
) -> TracedStep | None:
    """The traced step. If tracing fails, add to `problems` why, and which operations met until then have no rule."""
    try:
        return trace_step(model, objective, batch, model_refused=model_refused)
    except TraceError as error:
        kept.restore_holders_of(is_traced)
        problems.add(as_torch_raises(problem, model, objective, batch) for problem in error.problems)
        if error.graph is not None:
            problems.add(without_rule(error.graph))
        return None
