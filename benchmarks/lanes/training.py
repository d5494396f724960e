"""Plays one run of the study on one thread. All steps of training are exact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.lanes.plan import CURVES, GARBAGE, Run
from benchmarks.lanes.subjects import subject
from protocol.capture import CapturedStep, load_into
from protocol.lanes import Job, Lanes, Membership, lanes, seeds
from protocol.lanes.oracle import Sent
from protocol.lanes.splitting import EXPONENT, VALUE
from protocol.program.step import State
from protocol.program.types import TensorType

POINTS = 20
"""Number of points of a curve."""

States = Iterator[tuple[int, Callable[[], State]]]
"""Yields pairs: a step count, and a function that returns the state after that many steps."""


@dataclass(frozen=True)
class Outcome:
    """The results of a run. `loss` is in nats per item, on held-out data. `received` is the number of bytes
    that each lane receives in the whole run.

    `seconds` is the processor time of the training, and `step_seconds` is the processor time of one inner
    step. `curve` has pairs (steps, loss) if the model of the run has the size `CURVES`. Otherwise it is
    empty.
    """

    loss: float
    received: float
    seconds: float
    step_seconds: float
    curve: Sequence[Sequence[float]] = ()


def play(run: Run) -> Outcome:
    """Train as the run says, and evaluate the result."""
    torch.set_num_threads(1)
    what = subject(run.size)
    if run.rule == "all-reduce":
        what = replace(what, batch=what.batch * run.width)
    captured = what.captured(run.seed, run.steps)
    model = what.make_model(run.seed)

    def loss(state: State) -> float:
        load_into(model, state)
        return what.evaluate(model.eval())["held-out loss"]

    curve: list[tuple[int, float]] = []
    took, began = 0.0, time.process_time()
    for steps, result in _trained(run, captured):
        took += time.process_time() - began
        if steps == run.steps or (run.size == CURVES and steps % (run.steps // POINTS) == 0):
            curve.append((steps, loss(result())))
        began = time.process_time()
    count = run.steps * (1 if run.rule == "all-reduce" else run.width)
    kept = curve if run.size == CURVES else []
    return Outcome(curve[-1][1], _received(run, captured), took, took / count, kept)


def _received(run: Run, captured: CapturedStep) -> float:
    """Bytes that each machine receives in the whole run."""
    parameters = sum(p.numel() for p in _parameters(captured, captured.initial).values())
    rounds = run.steps // run.inner
    if run.rule == "all-reduce":
        # In a float32 ring, a machine receives each number twice, except for its own part.
        return 8 * parameters * (run.width - 1) / run.width * run.steps
    each = _job(run, captured).message_bytes if run.rule == "lanes" else 4 * parameters
    return each * (run.width - 1) * rounds


def _trained(run: Run, captured: CapturedStep) -> States:
    if run.rule in ("alone", "all-reduce"):
        return _stepped(captured, captured.initial_state(run.seed), run.steps)
    return _by_lanes(run, captured) if run.rule == "lanes" else _averaged(run, captured)


def _stepped(captured: CapturedStep, state: State, steps: int) -> States:
    for number in range(1, steps + 1):
        state = captured.step(state)
        yield number, partial(dict, state)


def _by_lanes(run: Run, captured: CapturedStep) -> States:
    job = _job(run, captured)
    of = job, seeds(run.seed, run.width), _membership(run, run.steps // run.inner)
    playing = Job(*of, _garbage(job.message_types)) if run.fault == GARBAGE else Job(*of)
    for done in playing.rounds():
        yield (done.number + 1) * run.inner, partial(playing.result, done)


def _job(run: Run, captured: CapturedStep) -> Lanes:
    return lanes(
        captured,
        width=run.width,
        density=1 / run.block,
        inner_steps=run.inner,
        rate=run.rate,
        decay=run.decay,
        most_exponent=run.most_exponent,
    )


def _membership(run: Run, rounds: int) -> Membership:
    rows = [["counts"] * run.width for _ in range(rounds)]
    for number, row in enumerate(rows):
        late = run.fault == "one late every second round" and number % 2
        away = run.fault == "one away for a third" and rounds / 3 <= number < 2 * rounds / 3
        evicted = run.fault == "one evicted" and number >= rounds / 2
        row[-1] = "late" if late else "away" if away or evicted else "counts"
    return Membership.of(rows)


def _garbage(types: Mapping[str, TensorType]) -> Sent:
    """Return a function that replaces the numbers of the first lane's messages in rounds 20 to 29 with huge
    ones: every value becomes 127, and every exponent 100. It leaves all other messages alone.
    """

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


def _averaged(run: Run, captured: CapturedStep) -> States:
    """Train with an outer step as in DiLoCo: it applies the float32 mean of the lanes' differences by SGD,
    plain or with Nesterov momentum.
    """
    states: list[State] = [captured.initial_state(seed) for seed in seeds(run.seed, run.width)]
    base = _parameters(captured, states[0])
    velocity = {name: torch.zeros_like(x) for name, x in base.items()}
    for number in range(1, run.steps // run.inner + 1):
        states = [_inner(captured, {**state, **base}, run.inner) for state in states]
        for name, x in base.items():
            moved = torch.stack([x - state[name] for state in states]).mean(0)
            velocity[name] = run.momentum * velocity[name] + moved
            base[name] = x - run.rate * (moved + run.momentum * velocity[name] if run.momentum else moved)
        yield number * run.inner, partial(dict, {**states[0], **base})


def _inner(captured: CapturedStep, state: State, steps: int) -> State:
    for _ in range(steps):
        state = captured.step(state)
    return state
