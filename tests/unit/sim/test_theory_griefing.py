"""Griefing factors: against the contracts' integer splits, sums of bonds, and the thresholds that figures are
set by."""

from typing import Any

import pytest

from protocol.tasks.economics import settle_split
from sim.theory import (
    Griefing,
    TheoryError,
    bond_schedule,
    bonds_together,
    false_challenge,
    held_seconds,
    late_solver,
    least_bond,
    least_delay_penalty,
    missed_draw_excess,
    silent_verifier,
    unproved_draw,
    waiting_cost,
)


def test_factor_is_harm_for_each_unit_lost() -> None:
    assert Griefing(3, 6).factor == 0.5
    assert Griefing(3, 0).factor == float("inf")
    assert Griefing(0, 0).factor == 0


@pytest.mark.parametrize("bond", [0, 1, 9, 100])
def test_false_challenge_pays_the_solver_half_rounded_down(bond: int) -> None:
    """GameState._dismiss: pay(remaining / 2), burn the rest."""
    got = false_challenge(bond=bond, defence=70, delay=5, gas=3)
    solver, burned = bond // 2, bond - bond // 2
    assert got.harm == 75 - solver
    assert got.loss == solver + burned + 3
    assert false_challenge(bond=200, defence=70).harm == 0


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_least_bond_brings_the_factor_down(factor: float) -> None:
    bond = least_bond(defence=700, delay=300, factor=factor, gas=10)
    enough = false_challenge(bond=int(bond) + 2, defence=700, delay=300, gas=10)
    short = false_challenge(bond=int(bond) - 2, defence=700, delay=300, gas=10)
    assert enough.factor <= factor < short.factor
    assert least_bond(defence=0, delay=0, factor=factor) == 0


def test_bonds_double_beyond_four() -> None:
    assert [bond_schedule(bond=3, open_challenges=n) for n in range(7)] == [3, 3, 3, 3, 6, 12, 24]
    assert bond_schedule(bond=3, open_challenges=9, drawn=True) == 3
    for n in range(12):
        together = sum(bond_schedule(bond=3, open_challenges=i) for i in range(n))
        assert bonds_together(bond=3, challenges=n) == together


def test_a_payout_is_held_for_both_clocks_sixteen_games_at_a_time() -> None:
    assert held_seconds(game_time=60, solver=0) == 60
    assert held_seconds(game_time=60, solver=60, games=16) == 120
    assert held_seconds(game_time=60, solver=10, games=17) == 140
    with pytest.raises(TheoryError):
        held_seconds(game_time=60, solver=61)
    assert waiting_cost(amount=1000, seconds=365 * 86_400 / 2, yearly_rate=0.1) == pytest.approx(50)


def test_silence_costs_a_fee_and_harms_by_a_price() -> None:
    case: dict[str, Any] = {
        "price": 1000.0,
        "audit_fee": 10.0,
        "duties": 5,
        "other_duties": 10,
        "draw_fee": 7.0,
    }
    plain = silent_verifier(**case, replay_cost=4.0)
    assert (plain.harm, plain.loss) == (1000 + 100 + 7, 5 * 6)
    # Under the contracts a verifier that would earn nothing loses nothing.
    assert silent_verifier(**case, replay_cost=10.0).factor == float("inf")
    locked = silent_verifier(**case, replay_cost=4.0, lock=10.0)
    assert locked.loss == 5 * 16
    redrawn = silent_verifier(**case, replay_cost=4.0, lock=10.0, redraws=2, seated_again=0.1)
    assert redrawn.harm == pytest.approx(1107 / 100)
    assert redrawn.loss == pytest.approx(80 * 1.11)


def test_a_late_solver_loses_its_penalty_and_pays_nobody() -> None:
    got = late_solver(delay_penalty=50, delay=200.0, stake=400, capital_cost=10.0)
    assert got == Griefing(200, 60)
    assert late_solver(delay_penalty=50, delay=200.0, stake=30).loss == 30
    penalty = least_delay_penalty(delay=200, factor=0.5, capital_cost=10)
    assert late_solver(
        delay_penalty=int(penalty), delay=200, stake=10**6, capital_cost=10
    ).factor == pytest.approx(0.5)
    with pytest.raises(TheoryError, match="never compensated"):
        least_delay_penalty(delay=1, factor=0)


@pytest.mark.parametrize(("misses", "q"), [(0, 4), (1, 6), (2, 9), (3, 14)])
def test_missed_draws_take_fees_from_the_price(misses: int, q: int) -> None:
    """V = 3, fee 10: the escrow holds 3 (4 + 1) fees, and 3 (q + 1) duties are paid."""
    got = missed_draw_excess(
        price=1000, audit_fee=10, segments=100, segments_per_verifier=4, verifiers=3, misses=misses
    )
    assert got == 30 * (q - 4)
    assert got == 1000 - settle_split(1000, 150, 10, 3 * (q + 1)).to_solver


def test_missed_draws_take_no_more_than_there_is() -> None:
    case = {"audit_fee": 10, "segments_per_verifier": 4, "verifiers": 3, "misses": 3}
    # 45 duties and 180 units: 4 each. With 250 it is 5 each, and what does not divide stays the solver's.
    assert missed_draw_excess(price=30, segments=100, **case) == 30
    assert missed_draw_excess(price=100, segments=100, **case) == 75
    # K = 8: eight duties for each verifier, however large q.
    assert missed_draw_excess(price=1000, segments=8, **case) == 30 * 8 - 150


def test_unproved_draws_end_in_a_void_and_a_burned_stake() -> None:
    case: dict[str, Any] = {
        "price": 1000,
        "audit_fee": 10,
        "segments": 100,
        "segments_per_verifier": 4,
        "verifiers": 3,
        "stake": 4000,
        "most_misses": 2,
        "censoring": 25.0,
    }
    twice = unproved_draw(**case, misses=2, delay=3.0)
    assert twice == Griefing(150 + 6, 50)
    assert unproved_draw(**case, misses=3) == Griefing(5000, 75)
    with pytest.raises(TheoryError, match="misses must be from 1 to 3"):
        unproved_draw(**case, misses=4)
