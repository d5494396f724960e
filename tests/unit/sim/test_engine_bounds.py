"""Amounts beyond 62 bits are refused before any round, even if an intermediate value overflows."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.tasks.amounts import YEAR
from sim.agents.bystanders import Griefer
from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.submitters import Challenging
from sim.agents.verifiers import Verifier
from sim.engine.books import Books, most_outside
from sim.errors import ParameterError
from sim.parameters import MarketParameters
from sim.units import TOKEN

MOST = 10**9 * TOKEN
YEARS: tuple[Any, ...] = (1.0, YEAR // 10, YEAR // 5, YEAR // 2)
PEOPLE = population([(Solver(), 20)], [(Verifier(), 200)])
MANY_GAMES = population([(Solver(), 1)], [(Verifier(), 1)], [(Griefer(1.0, games=1_000_000), 1)])
MANY_SLOTS = population([(Solver(), 1)], [(Verifier(), 1000, 1 << 15)])


@pytest.mark.parametrize(
    ("people", "rounds", "changed"),
    [
        (PEOPLE, 10_000, {"stake": MOST}),
        (PEOPLE, 1, {"stake": MOST, "solver_capital": 10**6}),
        (PEOPLE, 10_000, {"budget": MOST}),
        (MANY_GAMES, 1_000_000, {"bond": MOST}),
        (MANY_SLOTS, 1, {"stake_unit": MOST}),
    ],
)
def test_deposits_beyond_62_bits_are_refused(
    people: Population, rounds: int, changed: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError, match=r"deposits of a market below 2\^62 token units, got .*; lower"):
        Books(MarketParameters(**changed), people, 1, rounds)


@pytest.mark.parametrize(
    ("rounds", "changed"),
    [
        (1_000_000, {"gain": 10**7 * TOKEN}),
        (1_000_000, {"gas_price": 1.0, "gas_dispute": 10**9}),
        (10, {"training_cost": MOST, "replay_cost": 1e6}),
        (10_000_000, {"capital_rate": 100.0, "audit_time": 10 * YEAR}),
    ],
)
def test_costs_and_gains_beyond_62_bits_are_refused(rounds: int, changed: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="costs and gains outside of the vault"):
        Books(MarketParameters(**changed), PEOPLE, 1, rounds)


def test_costs_and_gains_by_hand() -> None:
    """There are 18 replays, which cost 5 tokens each. Two seats with 2 segments each are drawn twice, which
    gives 8 replays. A bystander may replay all 10 segments.

    There are also 4 attestations and 12 games. The seats play 4 games, the griefer 3 and the submitter 4. One
    more is counted for a submitter that challenges in another account's place.
    """
    parameters = MarketParameters(
        budget=100 * TOKEN,
        gain=7 * TOKEN,
        training_cost=50 * TOKEN,
        replay_cost=1.0,
        segments=10,
        verifiers=2,
        segments_per_verifier=2,
        redraws=1,
        gas_price=0.5,
        gas_task=10,
        gas_attest=2,
        gas_dispute=3,
        gas_defence=1,
    )
    people = population([(Solver(), 1)], [(Verifier(), 5)], [(Griefer(1.0, games=3), 1)], Challenging(4))
    gas = 0.5 * (10 + 4 * 2 + 12 * 4)
    assert most_outside(parameters, people) == (100 + 7 + 90 + gas) * TOKEN


def test_capital_by_hand() -> None:
    """Capital costs 100 % a year. There are 0.1 years from the bid to the submission, and 0.2 years from
    there to the settlement. In a game, each side takes 0.5 years.

    4 seats lock 1 + 1 tokens each. A bond of 3 tokens is locked in each of 11 games: the seats play 4 games,
    the submitter 4 and the griefer 3.
    """
    parameters = MarketParameters(
        **dict.fromkeys(("gain", "training_cost", "gas_price"), 0),
        **dict(zip(("capital_rate", "training_time", "audit_time", "game_time"), YEARS)),
        budget=100 * TOKEN,
        stake=900 * TOKEN,
        delay_penalty=10 * TOKEN,
        audit_fee=TOKEN,
        draw_fee=TOKEN,
        bond=3 * TOKEN,
        verifiers=2,
        segments_per_verifier=1,
        redraws=1,
    )
    people = population([(Solver(), 1)], [(Verifier(), 5)], [(Griefer(1.0, games=3), 1)], Challenging(4))
    escrow, stake = (100 + 2 + 8) * 0.3, 900 * (0.2 + 2 * 0.5)
    locked = escrow + 10 * 0.1 + stake + 4 * 2 * 0.2 + (4 + 4 + 3) * 3 * 2 * 0.5
    assert most_outside(parameters, people) == pytest.approx((100 + locked) * TOKEN)


def test_what_fits_is_played_on() -> None:
    books = Books(MarketParameters(), PEOPLE, 3, 10_000)
    assert books.ledger.balanced()
    assert books.ledger.free.dtype == books.outside.dtype == "int64"
