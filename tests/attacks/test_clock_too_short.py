"""Terms that leave a solver less time in a game than replaying segments takes (dispute.md section 6).

A deployment's minimum clock does not depend on the length of segments. With too short a clock, the submitter
could challenge its own task; the honest solver could not post its step trees in time, and the submitter would
get the restitution.
"""

from __future__ import annotations

from dataclasses import replace

from protocol.chain.parameters import DEVNET
from protocol.node.words import duration
from protocol.tasks.admission import Rates
from protocol.tasks.floor import Costs
from protocol.tasks.offers import Figures, Offer, Refusal, decide
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
