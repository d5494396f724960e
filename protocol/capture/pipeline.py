"""Runs the stages of `capture` in order. Most refusals are collected, and raised as one error before the
program is assembled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.analysis.intervals import Interval
from protocol.capture.analysis.ranges import bounds_of_shared, bounds_of_written, require_ranges
from protocol.capture.analysis.roles import Bits, roles_of, table_of
from protocol.capture.assembly.accumulation import accumulated
from protocol.capture.assembly.batch import Drawing
from protocol.capture.assembly.checks import within_limits
from protocol.capture.assembly.part import Part
from protocol.capture.assembly.state import buffers_of, initial_tensors, resumed
from protocol.capture.assembly.step import Assembled, assemble
from protocol.capture.errors import Problem, Problems
from protocol.capture.expansion.distinct import mark_distinct
from protocol.capture.expansion.expand import expand
from protocol.capture.expansion.folding import folded
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
from protocol.capture.optimisers.checks import require_optimizer, require_phases, require_still_frozen
from protocol.capture.optimisers.phases import Phase, training_only
from protocol.capture.optimisers.schedules import as_in_another_step, learning_rates
from protocol.capture.optimisers.update import Update, update_of
from protocol.capture.preflight.repeat import moved, traced_otherwise
from protocol.capture.preflight.run import Preflight, require_same_after_others, worst
from protocol.capture.result import CapturedStep, Origin
from protocol.capture.tracing.checks import TraceError, left_untouched, unvalidated
from protocol.capture.tracing.step import Objective
from protocol.capture.tracing.tracer import TracedStep, as_torch_raises, constants_of, is_traced, trace_step
from protocol.capture.types import as_committed
from protocol.program.step import State, StepProgram


def capture(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    dataset: Any,
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

    `dataset` holds tensors or numpy arrays by name, or is a map-style dataset of items of equal shapes
    (`inputs.dataset.committed`). `objective(model, batch)` returns the f32 scalar loss, or the loss and a
    dict of f32 scalar metrics. `batch` holds `batch_size` rows of every tensor or, with `micro_batches`, an
    equal part of these rows. In `batch`, integers are int64, except uint8, which stays uint8; half-precision
    floats become f32. The rows are drawn inside the program, by default with replacement. With
    `replacement=False` they are drawn as by a `DataLoader` with `shuffle` and `drop_last`: in epochs, each in
    a new order; the last rows of an epoch are dropped if they do not fill a batch. `optimizer` is any
    `torch.optim.Optimizer` over the model's parameters (`optimisers`); its rates, or those of `scheduler`,
    become a table of `steps` entries. `clip_norm` and `clip_value` limit the gradients as
    `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` do, in this order; with `clip_norm`, the norm
    before clipping is the metric `grad_norm`. `bits` replaces rows of the contraction table, by role
    (`analysis.roles`), as in {"vocabulary": (13, 13)}. Buffers that the step writes are part of the state;
    frozen parameters, parameters that the loss does not reach and other buffers become constants.

    With `micro_batches` the batch is divided into that many equal parts. Each part is a unit with its own
    forward and backward pass; gradients, loss and metrics are means over the units, and batch norm's
    statistics follow the units in order (`assembly.micro_batches`). Only the activations of one unit are in
    memory at a time, and as many processes as there are units can share a step.

    The state has the loss and metrics of the last step. With `history`, it also has those of the last
    `history` steps; `step_program.history(state)` returns them as a table.

    `resume` is the final state of an earlier task with the same model and kind of optimiser: training
    continues from its parameters, written buffers and optimiser state. Steps and rates count from 0 again, so
    `scheduler` gives the rates of the new task. The new task needs another seed, otherwise it draws the same
    batches.

    With `preflight`, the step is traced a second time, and a few steps are compared with torch's (package
    `preflight`). To show that a step needs nothing that an earlier step left in Python, one of these steps is
    also run with Python's values as they were before the first step. Without the preflight, a step that
    varies is captured as it was first traced. Model and objective are left unchanged. Raises `CaptureError`,
    with as many reasons at once as possible.
    """
    phase = Phase("", objective, optimizer, scheduler, clip_norm, clip_value)
    told = _Options(
        Drawing(batch_size, micro_batches, replacement), steps, bits or {}, history, resume, preflight
    )
    require_code(model, objective)
    return _captured(model, (phase,), dataset, told)


def capture_phases(
    model: nn.Module,
    phases: Sequence[Phase],
    dataset: Any,
    *,
    batch_size: int,
    steps: int,
    bits: Mapping[str, Bits] | None = None,
    micro_batches: int = 1,
    replacement: bool = True,
    history: int = 0,
    resume: State | None = None,
    preflight: bool = True,
) -> CapturedStep:
    """Capture a training step that updates parts of `model` one after the other: for example a discriminator
    and then a generator, or first only a head and, from a certain step on, also the rest.

    In each step the `phases` run one after the other, all on the same rows, and each sees the changes made by
    earlier phases. A phase that does not act in a step is still computed, since a program has no branches,
    but changes nothing. The preflight compares each phase separately, and refuses a phase whose results
    change if another phase runs before it in Python. Everything else is as in `capture`.
    """
    require_counts(steps=steps)
    require_phases(phases, steps)
    told = _Options(
        Drawing(batch_size, micro_batches, replacement), steps, bits or {}, history, resume, preflight
    )
    for phase in phases:
        require_code(model, phase.objective)
        require_optimizer(phase.optimizer)
    return _captured(model, phases, dataset, told)


@dataclass(frozen=True)
class _Options:
    """The arguments of `capture_phases`, except model, phases and dataset."""

    drawing: Drawing
    steps: int
    bits: Mapping[str, Bits]
    history: int
    resume: State | None
    preflight: bool


@dataclass(frozen=True)
class _Data:
    """The committed dataset, an example batch, and whether the model is refused. The batch is None if the
    dataset is refused, or if a count is refused. The counts are the batch size, steps, micro-batches and
    history.
    """

    committed: Mapping[str, Tensor]
    batch: Mapping[str, Tensor] | None
    model_refused: bool


def _captured(model: nn.Module, phases: Sequence[Phase], dataset: Any, told: _Options) -> CapturedStep:
    """The captured step of `capture`, which has one unnamed phase, or of `capture_phases`."""
    problems = Problems()
    with ExitStack() as stack:
        kept = [stack.enter_context(left_as_it_was(model, phase.objective)) for phase in phases]
        data = _examined(model, dataset, told, problems)
        traced = _all_traced(model, phases, data, told, kept, problems)
        updates, tables = _updates(model, phases, traced, told, problems)
        with problems.collected():
            table = table_of(told.bits)
        if problems:
            problems.add(
                problem for step in traced if step is not None for problem in without_rule(step.graph)
            )
        problems.raise_any()
        parts, rates = [], dict[str, Tensor]()
        for number, (phase, step, update, own) in enumerate(
            zip(phases, traced, updates, tables, strict=True)
        ):
            assert step is not None
            assert update is not None
            names = [f"learning_rate.{len(rates) + k}" for k in range(len(own))]
            rates |= dict(zip(names, own, strict=True))
            roles = roles_of(step.graph, len(step.parameters), len(step.buffers), table)
            when = phase.name, phase.every, phase.first
            parts.append(Part(step, roles, update, tuple(names), number, *when))
        notes = dict.fromkeys(note for part, one in zip(parts, kept) for note in _notes(part.traced, one))
        assembled, captured = _assembled(model, parts, data.committed, rates, told)
        graphs = tuple(part.traced for part in parts)
        resumes = told.resume is not None
        origin = Origin(model, tuple(phases), graphs, assembled.draws, told.drawing, resumes)
        captured = replace(captured, notes=tuple(notes), origin=origin)
        if not told.preflight:
            return captured

        def restore() -> None:
            for one in kept:
                one.restore()

        preflights, reports = dict[str, Preflight](), []
        for phase, part in zip(phases, parts, strict=True):
            alone = assembled, captured
            if phase.name:
                part = replace(part, name="", every=1, first=0)
                alone = _assembled(
                    model, [part], data.committed, rates, replace(told, history=0, resume=None)
                )
            restore()
            preflights[phase.name] = Preflight(model, phase.objective, part, *alone, told.drawing)
            reports.append(preflights[phase.name].run())
        require_same_after_others(preflights, restore)
        report = worst(reports)
        return replace(captured, preflight=report, notes=(*notes, *report.notes))


def _examined(model: nn.Module, dataset: Any, told: _Options, problems: Problems) -> _Data:
    """Check the counts (batch size, steps, micro-batches and history), the dataset and the model. Add
    everything that is refused to `problems`.
    """
    drawing = told.drawing
    with problems.collected():
        require_counts(batch_size=drawing.batch_size, steps=told.steps, micro_batches=drawing.micro_batches)
        if told.history != 0:
            require_counts(history=told.history)
        require_equal_parts(drawing.batch_size, drawing.micro_batches)
    data: Mapping[str, Tensor] = {}
    batch = None
    counts_refused = bool(problems)
    with problems.collected():
        data = committed(dataset)
        if not counts_refused:
            require_enough_rows(data, drawing.batch_size, drawing.replacement)
            batch = example_batch(data, drawing.batch_size // drawing.micro_batches)
    model_problems = Problems()
    for require in (require_types, require_separate_memory_and_no_hooks):
        with model_problems.collected():
            require(model)
    problems.add(model_problems)
    return _Data(data, batch, bool(model_problems))


def _all_traced(
    model: nn.Module,
    phases: Sequence[Phase],
    data: _Data,
    told: _Options,
    kept: Sequence[PythonState],
    problems: Problems,
) -> list[TracedStep | None]:
    """The traced graph of each phase, in which operations without a rule are expanded where possible. The
    graph is None for a phase that could not be traced, and for all phases if there is no example batch.
    """
    found: list[TracedStep | None] = []
    for phase, before in zip(phases, kept, strict=True):
        step = None
        if data.batch is not None:
            taken = {name for other in found if other is not None for name in other.buffers}
            with _training(model, phase):
                step = _traced(model, phase.objective, data, before, problems, taken)
                if told.preflight and step is not None:
                    problems.add(_traced_again(model, phase, data.batch, step, before, taken))
        found.append(step)
    whole = [step for step in found if step is not None]
    changed = {id(step): {*step.parameters, *step.written} for step in whole}
    for place, step in enumerate(found):
        if step is None:
            continue
        elsewhere = frozenset(name for other in whole if other is not step for name in changed[id(other)])
        held = {**step.buffers, **buffers_of(told.resume, step)}
        step = replace(step, buffers=held, moving=elsewhere & held.keys())
        others = {
            name for other in found if other is not None and other is not step for name in other.buffers
        }
        step = found[place] = folded(step, others)
        mark_distinct(step.graph, constants_of(step))
        expand(step.graph, RULES.__contains__)
    with problems.collected():
        shared = _bounds_of_shared(phases, found, data, told)
        for place, step in enumerate(found):
            if step is not None:
                with problems.collected():
                    moving = _bounds_of_moving(place, phases, found, shared, data, told)
                    steps, units = phases[place].times(told.steps), _units(step, told)
                    require_ranges(step, data.committed, steps, moving, units)
    return found


def _bounds_of_shared(
    phases: Sequence[Phase], traced: Sequence[TracedStep | None], data: _Data, told: _Options
) -> dict[int, dict[str, Interval]]:
    """Bounds of the integer buffers that more than one phase writes. There is one mapping for each phase that
    could be traced, by the phase's place. Its bounds hold whenever this phase begins to act.
    """
    whole = {place: step for place, step in enumerate(traced) if step is not None}
    units = [_units(step, told) for step in whole.values()]
    always = [phases[place].every == 1 and phases[place].first == 0 for place in whole]
    found = bounds_of_shared([*whole.values()], data.committed, told.steps, units, always)
    return dict(zip(whole, found, strict=True))


def _units(step: TracedStep, told: _Options) -> dict[str, int]:
    """How often a step writes each accumulated buffer, by name: once per micro-batch."""
    return dict.fromkeys(accumulated(step), told.drawing.micro_batches)


def _bounds_of_moving(
    reader: int,
    phases: Sequence[Phase],
    traced: Sequence[TracedStep | None],
    shared: Mapping[int, Mapping[str, Interval]],
    data: _Data,
    told: _Options,
) -> dict[str, Interval]:
    """Bounds of the integer buffers that phases other than the one at place `reader` write, alone or with
    others. The bounds hold whenever the reader acts. `shared` is what `_bounds_of_shared` returns.
    """
    writers = Counter(name for step in traced if step is not None for name in step.written)
    found = dict(shared[reader])
    for place, (phase, step) in enumerate(zip(phases, traced, strict=True)):
        if step is None or place == reader:
            continue
        # A later phase has not yet acted in the reader's last step.
        times = phase.times(told.steps if place < reader else told.steps - 1)
        once = bounds_of_written(step, data.committed, times + 1, shared[place])
        often = bounds_of_written(step, data.committed, times * told.drawing.micro_batches + 1, shared[place])
        both = {name: often[name] if name in accumulated(step) else bounds for name, bounds in once.items()}
        found |= {name: bounds for name, bounds in both.items() if writers[name] == 1}
    return found


def _updates(
    model: nn.Module,
    phases: Sequence[Phase],
    traced: Sequence[TracedStep | None],
    told: _Options,
    problems: Problems,
) -> tuple[list[Update | None], list[list[Tensor]]]:
    """The update of each phase (None if it is refused), and the tables of learning rates of each phase."""
    updates: list[Update | None] = []
    tables: list[list[Tensor]] = []
    steps_refused = not (type(told.steps) is int and 1 <= told.steps < 2**31)
    roots = {"": model, **{f"objective {phase.name}".strip(): phase.objective for phase in phases}}
    for phase, step in zip(phases, traced, strict=True):
        update, own = None, list[Tensor]()
        with problems.collected():
            require_optimizer(phase.optimizer)
            with problems.collected():
                require_still_frozen(model, () if step is None else step.thawed, phase.optimizer)
            with _training(model, phase):
                trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
            reached = trainable if step is None else step.parameters
            before = sum(map(len, tables))
            with problems.collected():
                clips = phase.clip_norm, phase.clip_value
                update = update_of(phase.optimizer, trainable, reached, *clips, told.resume, before)
            with problems.collected():
                times = 1 if steps_refused else phase.times(told.steps)
                own = learning_rates(phase.optimizer, phase.scheduler, times, model, roots)
        updates.append(update)
        tables.append(own)
    return updates, tables


def _training(model: nn.Module, phase: Phase) -> AbstractContextManager[None]:
    """A context in which only the parameters of the phase's optimiser are trainable. It freezes nothing for
    the unnamed phase of `capture`, whose optimiser must hold all trainable parameters that the loss reaches.
    """
    return training_only(model, phase.optimizer) if phase.name else nullcontext()


def _assembled(
    model: nn.Module,
    parts: Sequence[Part],
    data: Mapping[str, Tensor],
    rates: Mapping[str, Tensor],
    told: _Options,
) -> tuple[Assembled, CapturedStep]:
    """The step program of these parts, with its tensors."""
    own = dict(model.named_parameters())
    parameters = {name: as_committed(own[name]) for part in parts for name in part.traced.parameters}
    written = {name: part.traced.buffers[name] for part in parts for name in part.traced.written}
    held = {name: t for part in parts for name, t in part.traced.buffers.items()}
    changed = {*parameters, *written}
    constants = {name: t for name, t in held.items() if name not in changed}
    constants |= {name: rates[name] for part in parts for name in part.rates}
    assembled = assemble(parts, parameters, data, constants, told.drawing, told.history)
    program = StepProgram(assembled.program, tuple(assembled.state), len(data), len(constants))
    with within_limits():
        program.check()
    begun = resumed(assembled.state, parts, told.resume)
    kept = {name: t for part in parts for name, t in part.update.rule.initial.items()}
    initial = initial_tensors(assembled.state, parameters | written | kept | begun)
    return assembled, CapturedStep(program, data, constants, initial, assembled.coverage)


def _notes(traced: TracedStep, kept: PythonState) -> Iterator[str]:
    """Notes for the submitter on untrained parameters, unchecked distributions and unwatched objects."""
    yield from left_untouched(traced.untouched)
    yield from unvalidated(traced.distributions)
    yield from not_watched(kept)


def _traced_again(
    model: nn.Module,
    phase: Phase,
    batch: Mapping[str, Tensor],
    first: TracedStep,
    before: PythonState,
    taken: Collection[str],
) -> list[Problem]:
    """Trace the step a second time, with other learning rates. If this trace fails, returns its problems.
    Otherwise there are three kinds of problem, in this order. Returns only those of the first kind that
    occurs:

    - a problem for each Python value that the step changes,
    - a problem for the first difference between the two traces,
    - a problem for each line that reads rates or counts of steps.
    """
    before.restore_holders_of(is_traced)
    between = PythonState(before.roots)
    try:
        with as_in_another_step(phase.optimizer, phase.scheduler) as reads:
            second = trace_step(model, phase.objective, batch, taken=taken)
    except TraceError as error:
        return list(error.problems)
    before.restore_holders_of(is_traced)
    changes = moved(between, PythonState(before.roots))
    return changes or [*traced_otherwise(first, second)] or list(dict.fromkeys(reads))


def _traced(
    model: nn.Module,
    objective: Objective,
    data: _Data,
    kept: PythonState,
    problems: Problems,
    taken: Collection[str],
) -> TracedStep | None:
    """The traced step, or None if tracing fails. In that case, the reasons and the operations without a rule
    are added to `problems`.
    """
    assert data.batch is not None
    try:
        return trace_step(model, objective, data.batch, model_refused=data.model_refused, taken=taken)
    except TraceError as error:
        kept.restore_holders_of(is_traced)
        problems.add(as_torch_raises(problem, model, objective, data.batch) for problem in error.problems)
        if error.graph is not None:
            problems.add(without_rule(error.graph))
        return None
