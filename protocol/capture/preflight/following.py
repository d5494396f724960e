"""Runs the training in float32 torch, step by step alongside the exact one. Uses the submitter's own model,
objective, optimiser and scheduler, and the program's batches and random numbers.

This trains the captured model itself, so nothing else in the process may use the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from torch import Tensor, nn

from protocol.capture.assembly.state import KEY, STEP
from protocol.capture.optimisers.phases import Phase, training_only
from protocol.capture.preflight.reference import Drawn, Draws
from protocol.capture.result import CapturedStep, Origin
from protocol.capture.tracing.checkpoints import drawn_once
from protocol.capture.tracing.step import decomposed_kernels
from protocol.capture.types import as_seen_by_torch
from protocol.program.step import METRIC, State


class Following:
    """Runs, in torch, the training of a captured step. `seconds` holds the measured durations of training
    steps. The method `timed` always adds a duration. The method `step` adds one only if the training step
    draws no random numbers besides those for its batch. If it draws others, `step` uses the program's
    numbers, and drawing these takes longer than drawing torch's.
    """

    def __init__(self, captured: CapturedStep, origin: Origin) -> None:
        self._dataset = captured.dataset
        self._origin = origin
        self.seconds: list[float] = []

    @property
    def draws(self) -> bool:
        """Whether the step draws random numbers in addition to those for its batch."""
        return any(bool(of_phase) for of_phase in self._origin.draws)

    def step(self, state: State) -> dict[str, float]:
        """Run one step on the batch that the program draws from `state`. Returns the losses, by metric name,
        of the phases that act in this step. Raises any error of the submitter's code.
        """
        began = time.perf_counter()
        losses = {
            f"{METRIC}{phase.name}.loss" if phase.name else f"{METRIC}loss": self._acted(
                number, phase, state, True
            )
            for number, phase in enumerate(self._origin.phases)
            if _acts(phase, int(state[STEP]))
        }
        if not self.draws:
            self.seconds.append(time.perf_counter() - began)
        return losses

    def timed(self, state: State) -> None:
        """Run one more step with torch's own random numbers, only to measure its time."""
        began = time.perf_counter()
        for number, phase in enumerate(self._origin.phases):
            if _acts(phase, int(state[STEP])):
                self._acted(number, phase, state, False)
        self.seconds.append(time.perf_counter() - began)

    def _acted(self, number: int, phase: Phase, state: State, as_program: bool) -> float:
        """Run a phase's forward and backward pass on each unit, then its update, and return the mean loss. If
        `as_program`, random numbers are the program's; otherwise they are torch's own.
        """
        model, optimizer = self._origin.model, phase.optimizer
        with ExitStack() as stack:
            if phase.name:
                stack.enter_context(training_only(model, optimizer))
            for parameter in model.parameters():
                parameter.grad = None
            losses = []
            for batch, counter in self._units(state):
                with ExitStack() as drawing:
                    if as_program and self.draws:
                        draws = Draws(
                            self._origin.traced[number].graph, self._origin.draws[number], state[KEY], counter
                        )
                        for mode in (Drawn(draws), decomposed_kernels(), drawn_once()):
                            drawing.enter_context(mode)
                    loss = _loss(phase, model, batch)
                    (loss / self._origin.drawing.micro_batches).backward()
                losses.append(float(loss.detach()))
            held = [p for group in optimizer.param_groups for p in group["params"]]
            if phase.clip_norm is not None:
                nn.utils.clip_grad_norm_(held, phase.clip_norm)
            if phase.clip_value is not None:
                nn.utils.clip_grad_value_(held, phase.clip_value)
            optimizer.step()
            if phase.scheduler is not None:
                phase.scheduler.step()
        return sum(losses) / len(losses)

    def _units(self, state: State) -> Iterator[tuple[Mapping[str, Tensor], int]]:
        """The batches of the step's equal parts, and the counters that key their random numbers."""
        drawing, rows = self._origin.drawing, next(iter(self._dataset.values())).shape[0]
        index = drawing.drawn(rows, state[KEY], state[STEP]).long()
        first = int(state[STEP]) * drawing.micro_batches
        for unit, part in enumerate(index.chunk(drawing.micro_batches)):
            yield _rows(self._dataset, part), first + unit


def following(captured: CapturedStep) -> Following | None:
    """A `Following` for a captured step; None if the captured step has no `origin`, or if its training was
    resumed.
    """
    origin = captured.origin
    return None if origin is None or origin.resumed else Following(captured, origin)


def apart(ours: Mapping[str, float], theirs: Mapping[str, float]) -> float:
    """The largest difference between two losses of the same name. Each difference is relative to the size of
    torch's loss, or to `FLOOR` if that is larger. If any difference is NaN, the result is NaN.
    """
    found = [abs(ours[name] - loss) / max(abs(loss), FLOOR) for name, loss in theirs.items()]
    return math.nan if any(map(math.isnan, found)) else max(found, default=0.0)


FLOOR = 0.1
"""Differences are relative to the loss, or to this value if the loss is smaller."""


def _rows(dataset: Mapping[str, Tensor], index: Tensor) -> Mapping[str, Tensor]:
    return {name: t[index].to(as_seen_by_torch(t.dtype)) for name, t in dataset.items()}


def _loss(phase: Phase, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    found = phase.objective(model, batch)
    return found[0] if isinstance(found, tuple) else found


def _acts(phase: Phase, step: int) -> bool:
    return step >= phase.first and (step - phase.first) % phase.every == 0
