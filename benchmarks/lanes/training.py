"""One run of the study: exact training by the captured step, on one thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.lanes.plan import GARBAGE, SHAPES, Run
from examples import gpt
from protocol.capture import CapturedStep, load_into
from protocol.lanes import Job, Membership, lanes, seeds
from protocol.lanes.oracle import Sent
from protocol.lanes.splitting import EXPONENT, VALUE
from protocol.program.step import State
from protocol.program.types import TensorType


@dataclass(frozen=True)
class Outcome:
    """Nats a byte on held-out windows, bytes that a lane receives in all, processor seconds, and of one inner step."""

    loss: float
    received: float
    seconds: float
    step_seconds: float


def play(run: Run) -> Outcome:
    """Train and evaluate."""
    torch.set_num_threads(1)
    shape = SHAPES[run.size]
    windows, held_out = gpt.split(shape.context)
    model = gpt.make_model(shape, run.seed)
    batch = gpt.BATCH * (run.width if run.rule == "all-reduce" else 1)
    captured = gpt.build_of(model, windows, batch, run.steps)
    began = time.process_time()
    state, received = _trained(run, captured)
    took = time.process_time() - began
    load_into(model, state)
    model.eval()
    with torch.no_grad():
        loss = float(gpt.objective(model, held_out))
    count = run.steps * (1 if run.rule == "all-reduce" else run.width)
    return Outcome(loss, received, took, took / count)


def _trained(run: Run, captured: CapturedStep) -> tuple[Mapping[str, Tensor], float]:
    if run.rule in ("alone", "all-reduce"):
        state: Mapping[str, Tensor] = captured.initial_state(run.seed)
        for _ in range(run.steps):
            state = captured.step(state)
        parameters = sum(p.numel() for p in _parameters(captured, state).values())
        # A ring of float32 sends and receives each number twice but for the own part.
        return state, 8 * parameters * (run.width - 1) / run.width * run.steps
    rounds = run.steps // run.inner
    if run.rule != "lanes":
        state = _averaged(run, captured, rounds)
        parameters = sum(p.numel() for p in _parameters(captured, state).values())
        return state, 4 * parameters * (run.width - 1) * rounds
    job = lanes(
        captured,
        width=run.width,
        density=1 / run.block,
        inner_steps=run.inner,
        rate=run.rate,
        decay=run.decay,
    )
    of = job, seeds(run.seed, run.width), _membership(run, rounds)
    playing = Job(*of, _garbage(job.message_types)) if run.fault == GARBAGE else Job(*of)
    for done in playing.rounds():
        last = done
    return playing.result(last), job.message_bytes * (run.width - 1) * rounds


def _membership(run: Run, rounds: int) -> Membership:
    rows = [["counts"] * run.width for _ in range(rounds)]
    for number, row in enumerate(rows):
        late = run.fault == "one late every second round" and number % 2
        away = run.fault == "one away for a third" and rounds / 3 <= number < 2 * rounds / 3
        evicted = run.fault == "one evicted" and number >= rounds / 2
        row[-1] = "late" if late else "away" if away or evicted else "counts"
    return Membership.of(rows)


def _garbage(types: Mapping[str, TensorType]) -> Sent:
    """In rounds 20 to 29 the first lane's message holds the largest numbers of its types."""

    def sent(number: int, lane: int, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if lane != 0 or not 20 <= number < 30:
            return message
        found = dict(zip(types, message, strict=True))
        found |= {VALUE: torch.full_like(found[VALUE], 127), EXPONENT: torch.full_like(found[EXPONENT], 100)}
        return tuple(found.values())

    return sent


def _parameters(captured: CapturedStep, state: State) -> dict[str, Tensor]:
    assert captured.origin is not None
    return {name: state[name] for name in captured.origin.traced[0].parameters}


def _averaged(run: Run, captured: CapturedStep, rounds: int) -> dict[str, Tensor]:
    """The mean of the lanes' differences in float32, by the outer rule of DiLoCo: SGD, or Nesterov's momentum."""
    states: list[State] = [captured.initial_state(seed) for seed in seeds(run.seed, run.width)]
    base = _parameters(captured, states[0])
    velocity = {name: torch.zeros_like(x) for name, x in base.items()}
    for _ in range(rounds):
        states = [_inner(captured, {**state, **base}, run.inner) for state in states]
        for name, x in base.items():
            moved = torch.stack([x - state[name] for state in states]).mean(0)
            velocity[name] = run.momentum * velocity[name] + moved
            base[name] = x - run.rate * (moved + run.momentum * velocity[name] if run.momentum else moved)
    return {**states[0], **base}


def _inner(captured: CapturedStep, state: State, steps: int) -> State:
    for _ in range(steps):
        state = captured.step(state)
    return state
