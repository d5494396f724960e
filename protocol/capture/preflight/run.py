"""The preflight: runs a few steps from the program's own initial state, exactly and by torch, and compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protocol.capture.analysis.roles import Role
from protocol.capture.assembly.accumulation import accumulated
from protocol.capture.assembly.batch import Drawing
from protocol.capture.assembly.part import Part
from protocol.capture.assembly.state import KEY, STEP
from protocol.capture.assembly.step import Assembled
from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.inputs.python_state import PythonState, roots_of
from protocol.capture.preflight import checks
from protocol.capture.preflight.clocks import asked_clocks
from protocol.capture.preflight.compare import Difference, differences, measure, not_finite, others
from protocol.capture.preflight.locate import LocalError, local_errors
from protocol.capture.preflight.reference import Draws, Results, by_graph, by_torch, mean
from protocol.capture.preflight.repeat import moved
from protocol.capture.result import CapturedStep, Report
from protocol.capture.tracing.step import Objective
from protocol.capture.tracing.tracer import TracedStep
from protocol.capture.types import as_seen_by_torch
from protocol.program.execute import Interpreter
from protocol.program.library import fusions, hints, kernels
from protocol.program.step import METRIC, State

BATCHES = 2
"""The number of steps that are compared."""
SEED = 0
"""The seed of the initial state, which determines the batches and random numbers used."""
SHOWN = 3
"""The maximum number of differences that are listed in an error or in the notes."""
ATTEMPTS = 8
"""The largest number of times that the trace is run in float32 if a step's results seem to differ from those
of its trace.
"""
NUDGE = 2.0**-22
"""The largest relative change of a parameter by `Preflight._nudged`: four roundings of float32."""


@dataclass(frozen=True)
class Preflight:
    """The preflight of a captured step with a single part, and everything that the step was captured from."""

    model: nn.Module
    objective: Objective
    part: Part
    assembled: Assembled
    captured: CapturedStep
    drawing: Drawing

    @property
    def traced(self) -> TracedStep:
        """The traced step of the only part."""
        return self.part.traced

    def run(self) -> Report:
        """Compare `BATCHES` consecutive steps with torch. Raises `CaptureError` if a step is refused."""
        state: State = self.captured.initial_state(SEED)
        fresh = PythonState(roots_of(self.model, self.objective))
        before: PythonState | None = None
        notes: dict[str, None] = {}
        errors = [(0.0, 0.0)]
        for _ in range(BATCHES):
            asked: list[Problem] = []
            with asked_clocks(asked):
                plain = self._mean_of(state, self._by_torch)
            raise_any(asked)
            kept = PythonState(roots_of(self.model, self.objective))
            if before is not None:
                raise_any(moved(before, kept))
                self._require_same_without_the_past(fresh, state, plain)
            before = kept
            ours, after = self._exactly(state)
            notes.update(dict.fromkeys(self._not_finite(state, ours, plain)))
            true = plain
            if any(differences(ours, plain, plain)):
                true = self._mean_of(state, self._in_float64)
                self._require_traced_is_run(state, plain, true)
                notes.update(dict.fromkeys(self._explained(state, list(differences(ours, true, plain)))))
            errors.append(_errors(ours, true))
            state = after
        loss, gradients = torch.tensor(errors, dtype=torch.float64).max(0).values.tolist()
        return Report(BATCHES, loss, gradients, tuple(notes))

    def first_step(self) -> Results:
        """The results of the first step in torch, from Python's present state."""
        return self._mean_of(self.captured.initial_state(SEED), self._by_torch)

    # ------------------------------------------------------------------ one step, in three ways

    def _units(self, state: State) -> Iterator[tuple[dict[str, Tensor], int]]:
        """For each of a step's equal parts: its batch, as the objective sees it, and the counter that keys
        its random numbers.
        """
        step, dataset = int(state[STEP]), self.captured.dataset
        rows = next(iter(dataset.values())).shape[0]
        index, units = self.drawing.drawn(rows, state[KEY], state[STEP]), self.drawing.micro_batches
        for unit, part in enumerate(index.long().chunk(units)):
            batch = {name: t[part].to(as_seen_by_torch(t.dtype)) for name, t in dataset.items()}
            yield batch, step * units + unit

    def _draws(self, state: State, counter: int) -> Draws:
        return Draws(self.traced.graph, self.assembled.draws[0], state[KEY], counter)

    def _mean_of(
        self, state: State, compute: Callable[[State, Mapping[str, Tensor], Draws], Results]
    ) -> Results:
        sums = accumulated(self.traced)
        found = []
        for batch, counter in self._units(state):
            found.append(compute(state, batch, self._draws(state, counter)))
            state = {**state, **{name: found[-1].buffers[name].to(state[name].dtype) for name in sums}}
        return mean(found, sums)

    def _by_torch(self, state: State, batch: Mapping[str, Tensor], draws: Draws) -> Results:
        try:
            return by_torch(self.model, self.objective, self.traced, state, batch, draws)
        except CaptureError:
            raise
        except Exception as error:
            raise CaptureError([checks.refused_by_torch(error)]) from error

    def _in_float32(self, state: State, batch: Mapping[str, Tensor], draws: Draws) -> Results:
        return by_graph(self.traced, state, batch, draws, torch.float32)

    def _in_float64(self, state: State, batch: Mapping[str, Tensor], draws: Draws) -> Results:
        return by_graph(self.traced, state, batch, draws, torch.float64)

    def _exactly(self, state: State) -> tuple[Results, State]:
        """The results of the exact step, and the state after it."""
        program, step = self.assembled.with_gradients, self.captured.step_program
        interpreter = Interpreter(kernels(program, hints(program)), fuse=fusions)
        outputs = interpreter.run(program, (*step.order(state), *self.captured.fixed))
        after = dict(zip(step.state, outputs))
        gradients = dict(zip(self.traced.parameters, outputs[len(step.state) :], strict=True))
        buffers = {name: after[name] for name in self.traced.written}
        return Results(after[f"{METRIC}loss"], gradients, buffers), after

    # ------------------------------------------------------------------ what differs

    def _require_same_without_the_past(self, fresh: PythonState, state: State, plain: Results) -> None:
        """Refuse a step whose results in torch, `plain`, depend on what earlier steps left in Python, such as
        a tensor of the first step. `fresh` is Python's state before the first step.

        The step is run up to twice more, each time with Python's state set back to `fresh`. Results are
        compared bit for bit. If these two runs differ from each other, the code cannot be repeated exactly,
        and nothing is refused here.
        """
        runs = []
        for _ in range(2):
            fresh.restore()
            runs.append(self._mean_of(state, self._by_torch))
            if not (names := others(plain, runs[0])):
                return
        if not others(*runs):
            raise CaptureError([checks.depends_on_the_past(names[:SHOWN])])

    def _require_traced_is_run(self, state: State, plain: Results, true: Results) -> None:
        """Refuse a step whose results in torch differ from those of its trace.

        If an element lies next to the kink of a function, rounding can greatly change the results of a
        float32 run. So results that are too far off are also compared with runs of the trace on parameters
        that differ in their last bits.
        """
        found = {x.name: x for x in differences(plain, true, true)}
        for attempt in range(ATTEMPTS):
            if not found:
                return
            nearby = state if attempt == 0 else self._nudged(state, attempt)
            again = self._mean_of(nearby, self._in_float32)
            found = {x.name: x for x in differences(plain, true, again) if x.name in found}
        if found:
            raise CaptureError([checks.run_otherwise(_shown(list(found.values())))])

    def _nudged(self, state: State, seed: int) -> State:
        """The state with its parameters randomly changed by about the rounding errors of float32 sums."""
        generator = torch.Generator().manual_seed(seed)
        nudged = dict(state)
        for name in self.traced.parameters:
            x = state[name]
            if x.is_floating_point():
                nudged[name] = x * (1 + NUDGE * (2 * torch.rand(x.shape, generator=generator) - 1))
        return nudged

    def _not_finite(self, state: State, ours: Results, plain: Results) -> list[str]:
        """Notes on tensors that are not finite. Raises `CaptureError` if the program and torch do not have
        the same finite elements.
        """
        found = list(not_finite(ours, plain))
        if one_sided := [x for x in found if not x.alike]:
            self._explained(state, list(differences(ours, plain, plain)))
            raise CaptureError([checks.not_finite_in_one(x) for x in one_sided[:SHOWN]])
        return [checks.not_finite(x) for x in found[:SHOWN]]

    def _explained(self, state: State, found: list[Difference]) -> list[str]:
        """Notes on the differences `found`. Raises `CaptureError` if number formats do not explain them."""
        if not found:
            return []
        batch, counter = next(self._units(state))
        draws = self._draws(state, counter)
        worst: list[LocalError] = []
        for local in local_errors(self.traced, self.part.roles, state, batch, draws, counter):
            if not local.times_explained <= 1:
                refused = checks.computed_otherwise(local.operation, local.source, local.error, _shown(found))
                raise CaptureError([refused])
            worst = sorted([*worst, local], key=lambda x: -x.error)[:1]
        most = "".join(f"; most is lost by {x.operation} at {x.source}, {x.error:.2g}" for x in worst)
        roles = ", ".join(Role)
        return [
            f"precision: {difference}{most}; more `bits` help (roles: {roles})"
            for difference in found[:SHOWN]
        ]


def require_same_after_others(preflights: Mapping[str, Preflight], restore: Callable[[], None]) -> None:
    """Refuse a step in which the results of a phase in torch depend on what another phase leaves in Python,
    such as a flag of the model. `preflights` are by phase name. `restore` sets Python's state back to what it
    was before any step.

    Each phase is run before all others, after each other phase alone, and at its place in a second step.
    Results are compared bit for bit. If the code cannot be repeated exactly, nothing is refused here.
    """

    def results(name: str, *earlier: str) -> Results:
        restore()
        for each in earlier:
            preflights[each].first_step()
        return preflights[name].first_step()

    names = [*preflights]
    for place, name in enumerate(names if len(names) > 1 else ()):
        alone = results(name)
        for earlier in (*([other] for other in names if other != name), [*names, *names[:place]]):
            found = others(alone, results(name, *earlier))
            if found and not others(alone, results(name)):
                raise CaptureError([checks.depends_on_another_phase(name, found[:SHOWN])])


def worst(reports: Sequence[Report]) -> Report:
    """A report with the largest errors and all the notes of several reports."""
    errors = torch.tensor([(each.loss_error, each.gradient_error) for each in reports], dtype=torch.float64)
    notes = dict.fromkeys(note for each in reports for note in each.notes)
    loss, gradients = errors.max(0).values.tolist()
    return Report(BATCHES, loss, gradients, tuple(notes))


def _shown(found: list[Difference]) -> str:
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(map(str, found[:SHOWN])) + more


def _errors(ours: Results, true: Results) -> tuple[float, float]:
    """Relative errors of the loss, and of all gradients together."""
    gradients = (torch.cat([g.double().flatten() for g in r.gradients.values()]) for r in (ours, true))
    return measure("loss", ours.loss, true.loss).error, measure("gradients", *gradients).error
