"""Griefing factors, compared with the contracts' integer splits. Also the thresholds for bonds and penalties."""

import pytest

from sim.theory import (
    Griefing,
    TheoryError,
    false_challenge,
    held_seconds,
    late_solver,
    least_bond,
    least_delay_penalty,
    silent_verifier,
    waiting_cost,
)


def test_factor_is_harm_for_each_unit_lost() -> None:
    assert Griefing(3, 6).factor == 0.5
    assert Griefing(3, 0).factor == float("inf")
    assert Griefing(0, 0).factor == 0


@pytest.mark.parametrize("bond", [0, 1, 9, 100])
def test_false_challenge_pays_the_solver_half_rounded_down(bond: int) -> None:
    """A dismissed game pays the solver half of the bond, rounded down, and burns the rest."""
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


def test_a_payout_is_held_for_both_clocks_sixteen_games_at_a_time() -> None:
    assert held_seconds(game_time=60, solver=0) == 60
    assert held_seconds(game_time=60, solver=60, games=16) == 120
    assert held_seconds(game_time=60, solver=10, games=17) == 140
    with pytest.raises(TheoryError):
        held_seconds(game_time=60, solver=61)
    assert waiting_cost(amount=1000, seconds=365 * 86_400 / 2, yearly_rate=0.1) == pytest.approx(50)


def test_silence_costs_the_seat_and_the_draw_and_delays_others() -> None:
    got = silent_verifier(seat_fee=50, seat_cost=20, draw_fee=7, delay=3)
    assert got == Griefing(3, 57 + 30)
    # An account that would earn nothing loses no earnings.
    assert silent_verifier(seat_fee=50, seat_cost=60, draw_fee=7, delay=3).loss == 57


@pytest.mark.parametrize("penalty", [50, 51])
def test_half_of_a_late_solvers_penalty_pays_the_submitter(penalty: int) -> None:
    got = late_solver(delay_penalty=penalty, delay=200.0, capital_cost=10.0)
    assert got == Griefing(175, penalty + 10)
    assert late_solver(delay_penalty=penalty, delay=20.0).harm == 0


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_least_delay_penalty_brings_the_factor_down(factor: float) -> None:
    penalty = least_delay_penalty(delay=200, factor=factor, capital_cost=10)
    enough, short = (
        late_solver(delay_penalty=int(penalty) + more, delay=200, capital_cost=10) for more in (2, -2)
    )
    assert enough.factor <= factor < short.factor
