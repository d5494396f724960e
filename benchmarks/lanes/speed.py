"""Measures emitting a message, and absorbing eight messages, relative to one inner step. Times are processor
time on one thread.
"""

from __future__ import annotations

import time

from benchmarks.gpt import TOKENS, captured
from benchmarks.measure import Row, ratio_row, side_by_side
from benchmarks.recurrent import one_thread
from protocol.capture import CapturedStep
from protocol.lanes import lanes, seeds
from protocol.program.step import State

WIDTH, ROUNDS = 8, 5
DENSITIES = {"all": 1.0, "1/8": 1 / 8, "1/64": 1 / 64}


def rows() -> list[Row]:
    """For each density, three rows: the time of emitting and the time of absorbing, both relative to an inner
    step, and a message's size in bytes per parameter. The last row is that of `_oracle`.
    """
    step = captured("11M")
    with one_thread():
        return [
            *(row for name, density in DENSITIES.items() for row in _rows(step, name, density)),
            *_oracle(captured("1M")),
        ]


def _oracle(step: CapturedStep) -> list[Row]:
    """A row with the time of one round of a whole job, with all lanes in one process. The time is divided by
    that of the same number of exact steps without lanes.
    """
    width, inner = 4, 5
    job = lanes(step, width=width, density=1 / 8, inner_steps=inner)
    interpreter, of = job.interpreter(), seeds(1, width)
    states: list[State] = [job.initial_state(seed, lane) for lane, seed in enumerate(of)]
    inbox = [job.message(job.train(state, [job.nothing()] * width, interpreter)) for state in states]
    alone: list[State] = [step.initial_state(seed) for seed in of]

    def by_lanes() -> None:
        for state in states:
            job.message(job.train(state, inbox, interpreter))

    def by_one() -> None:
        for state in alone:
            for _ in range(inner):
                state = step.step(state)

    ratios = side_by_side(by_one, {"oracle": by_lanes}, ROUNDS, time.process_time)["oracle"]
    what = (
        f"a round of {width} lanes in one process, {inner} steps, density 1/8 / the steps alone, GPT of 0.9M"
    )
    return [ratio_row(what, [1 / ratio for ratio in ratios], "1.1x")]


def _rows(step: CapturedStep, name: str, density: float) -> list[Row]:
    job = lanes(step, width=WIDTH, density=density, inner_steps=1)
    interpreter = job.interpreter()
    state: State = job.initial_state(seeds(1, WIDTH)[0], 0)
    between = job.train(state, [job.nothing()] * WIDTH, interpreter)
    inbox = [job.message(between)] * WIDTH
    begun = job.absorbed(between, inbox, interpreter)
    trained = job.inner.step(begun, step.fixed, interpreter)

    def emit() -> None:
        job.emit.step(trained, (), interpreter)

    def absorb() -> None:
        job.absorbed(between, inbox, interpreter)

    def inner() -> None:
        job.inner.step(begun, step.fixed, interpreter)

    what = f"GPT of 10.8M, {TOKENS} tokens a step, 1 thread, density {name}"
    exchanged = sum(step.initial[parameter].numel() for parameter in job.parameters)
    found = side_by_side(inner, {"emit": emit, "absorb": absorb}, ROUNDS, time.process_time)
    emitting, absorbing = ([1 / ratio for ratio in found[part]] for part in ("emit", "absorb"))
    goal = {"1/8": "0.26", "1/64": "0.0325"}.get(name, "")
    return [
        ratio_row(f"emit / inner step, {what}", emitting, "0.05x"),
        ratio_row(f"absorb of {WIDTH} messages / inner step, {what}", absorbing, "0.10x"),
        Row(f"bytes of a message for each parameter, {what}", f"{job.message_bytes / exchanged:.4f}", goal),
    ]
