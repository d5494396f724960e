"""One round of the smallest market, for tests that compute each outcome by hand.

One solver without competition asks for its cost of 60 tokens. The task has one segment, and one seat, which
replays it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sim.agents.bystanders import Bystander
from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.submitters import Submitter
from sim.agents.verifiers import Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.mechanism.auctions import Auction, cheapest
from sim.parameters import MarketParameters
from sim.units import TOKEN

SMALL = MarketParameters(
    budget=100 * TOKEN,
    stake=1000 * TOKEN,
    restitution=100 * TOKEN,
    audit_fee=2 * TOKEN,
    delay_penalty=10 * TOKEN,
    training_cost=60 * TOKEN,
    replay_cost=1.1,
    gain=100 * TOKEN,
    gas_price=1e-6,
    gas_task=500_000,
    gas_attest=70_000,
    gas_dispute=600_000,
    gas_defence=400_000,
    segments=1,
    verifiers=1,
    segments_per_verifier=1,
    device_spread=0.0,
    markup=0.0,
    draw_fee=TOKEN,
    stake_unit=10 * TOKEN,
    bond=20 * TOKEN,
    reward=50 * TOKEN,
    game_cost=3 * TOKEN,
    retrain_reward=80 * TOKEN,
)
GAS_TASK, GAS_ATTEST, GAS_DISPUTE, GAS_DEFENCE = 0.5, 0.07, 0.6, 0.4
"""Costs of gas in tokens, at 10^-6 tokens per gas."""
REPLAY = 66
"""The cost of a replay in tokens: 1.1 times the training of the only segment."""
SPOKE = 3 + 2
"""The cost of a game plus the fee of a seat. A seat that challenges receives this in addition to the reward
and the bond.
"""
SLASH_BURNED = 1000 - 50 - 100
"""The part of a slashed stake that is burned if no seat has a claim: the stake less the reward and the
restitution.
"""
SILENCE = 2 + 1
"""What silence costs an account: the fee of a seat plus the fee of a draw."""


def play(
    solver: Solver,
    *verifiers: tuple[Verifier, int],
    bystanders: Sequence[tuple[Bystander, int]] = (),
    submitter: Submitter | None = None,
    runs: int = 4,
    **changed: Any,
) -> Columns:
    people = population([(solver, 1)], verifiers, bystanders, submitter or Submitter())
    return result(people, runs=runs, **changed)


def result(
    people: Population, *, runs: int = 4, rounds: int = 1, auction: Auction = cheapest, **changed: Any
) -> Columns:
    """Simulate one or more rounds. By default the winner is paid its ask, which keeps amounts round."""
    parameters = SMALL.with_values(changed)
    found = simulate(
        Case(parameters, people, auction), runs=runs, rounds=rounds, seed=np.random.SeedSequence(1)
    )
    amounts = ("price", "fees", "burned")
    return {
        name: column / TOKEN if name.startswith("profit") or name in amounts else column
        for name, column in found.items()
    }


def each(columns: Columns, **expected: float) -> None:
    """Check that all runs have these values. If `expected` names at least one end of a task, such as
    `settled`, all ends that it does not name must be 0.
    """
    ends = {"unsold", "expired", "convicted", "void", "stalled", "settled"}
    quiet = dict.fromkeys(ends - expected.keys(), 0.0) if ends & expected.keys() else {}
    for name, value in {**quiet, **expected}.items():
        assert columns[name] == pytest.approx(value, abs=1e-6), name
