"""Terms that leave a solver less time in a game than replaying segments takes (dispute.md section 6).

A deployment's minimum clock does not depend on the length of segments. With too short a clock, the submitter
could challenge its own task; the honest solver could not post its step trees in time, and the submitter would
get the restitution. The same holds for steps that take microseconds but whose traces or answers take minutes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.chain.parameters import DEVNET
from protocol.execution.speeds import STEPS, Speeds
from protocol.node.words import duration
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.check import check
from protocol.program.cost import cost
from protocol.program.program import Program
from protocol.program.types import TensorType
from protocol.tasks.admission import Rates
from protocol.tasks.floor import Costs
from protocol.tasks.offers import Figures, Offer, Refusal, Rule, decide
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms
from tests.chain.trees import terms

COSTS = Costs(machine=0.0, power=0.0, capital=0.05, late=0.0, gas=0.0, margin=0.2)
FIGURES = Figures(10**24, Rates(1e9), COSTS, opening=0.9)


def of(clock: int) -> Terms:
    """Terms with this clock and 4 segments; each segment trains for 60 s on the machine of `FIGURES`."""
    return replace(
        terms(),
        segments=4,
        segment_steps=60,
        step_operations=10**9,
        state_bytes=1000,
        training_period=3600,
        clock=clock,
    )


def test_a_clock_that_replays_do_not_fit_into_is_refused() -> None:
    for clock in (DEVNET.min_clock, 60, 3_546):
        decision = decide(of(clock), FIGURES)
        assert isinstance(decision, Refusal)
        assert decision.reason == f"games of this task: 59 min 7 s needed within {duration(clock, 4)}"


def test_three_times_sixteen_replays_and_the_steps_that_are_waited_for_are_enough() -> None:
    assert isinstance(decide(of(3 * 16 * 60 + 3 * 2 * 111 + 1), FIGURES), Offer)
    allowed = replace(of(1), replay_allowance=3_546)
    assert isinstance(decide(allowed, FIGURES), Offer)


DAY = 86_400
SCALAR = TensorType(DType.F32, (1,))


def one_of_many() -> Program:
    """A step that reads one element of a dataset of 256 MiB. A trace hashes all of it."""
    b = Builder("step")
    counter, dataset = b.input(SCALAR), b.input(TensorType(DType.U8, (1 << 28,)))
    b.output(b.add(counter, b.cast(b.strided(dataset, (1,), (1,)), DType.F32)))
    return b.build()


def long_row() -> Program:
    """A step with the `argmax` of a row of 2^30 elements, which are one element repeated."""
    b = Builder("step")
    counter, _ = b.input(SCALAR), b.input(SCALAR)
    row = b.strided(counter, (1 << 30,), (0,))
    b.output(b.add(counter, b.cast(b.argmax(row), DType.F32)))
    return b.build()


def short_steps(program: Program, clock: int) -> Terms:
    """Terms for this program and this clock, in which each segment has one step."""
    check(program)
    return replace(
        of(clock), program_id=program.id, segment_steps=1, step_operations=cost(program).operations
    )


def known(program: Program, step: float) -> Figures:
    """The figures of a solver that has read the bundle, and whose process has run ten steps of `step` seconds
    each.
    """
    speeds = Speeds()
    for _ in range(STEPS):
        speeds.of(program.id, cost(program).operations)(step)
    rates = Rates(2e9, programs=speeds.measured())
    return replace(FIGURES, rates=rates, traces={program.id: Traces.of(cost(program))})


def test_traces_and_values_count_where_the_programs_steps_are_fast() -> None:
    """A task is refused if its steps are fast but the traces and values of its games do not fit into the
    clock. A step takes 55 us, a trace 0.9 s. Each of 16 games needs a trace and 106 values of 256 MiB. All 16
    games together take 1,531 s at the full rates of the figures, and three times as long at a third of these
    rates, which is what counts.
    """
    program = one_of_many()
    figures = known(program, 55e-6)
    decision = decide(short_steps(program, 6_000), figures)
    assert isinstance(decision, Refusal)
    assert decision.rule is Rule.GAMES
    assert 3 * 1_531 < decision.least < DAY / 8
    task = short_steps(program, DAY)
    assert isinstance(decide(task, figures), Offer)
    assert isinstance(decide(task, replace(figures, taken={f"task {n}": task for n in range(15)})), Offer)
    many = decide(task, replace(figures, taken={f"task {n}": task for n in range(20)}))
    assert isinstance(many, Refusal)
    assert many.rule is Rule.GAMES


@pytest.mark.parametrize("step", [1e-3, 10.0], ids=["fast", "as slow as its cost"])
def test_words_of_a_long_row_do_not_fit_into_a_day(step: float) -> None:
    """The row has 4 GiB. A machine hashes it in 14 s, and must hash it 106 times in each of 16 games."""
    program = long_row()
    figures = known(program, step)
    decision = decide(short_steps(program, DAY), figures)
    assert isinstance(decision, Refusal)
    assert decision.rule is Rule.GAMES
    assert isinstance(decide(short_steps(program, 7 * DAY), figures), Offer)
