"""Tests one round of the smallest market, with silent seats, empty seats and stalled tasks. The expected
amounts are computed by hand, exact to the unit.
"""

from typing import Any

import numpy as np
import pytest

from sim.agents.bystanders import Bystander, Retrainer
from sim.agents.solvers import Lazy, Solver, Withholder
from sim.agents.verifiers import Absent, Colluding, Copying, Verifier
from sim.units import TOKEN
from tests.unit.sim.small_market import (
    GAS_ATTEST,
    GAS_DISPUTE,
    GAS_TASK,
    REPLAY,
    SILENCE,
    SLASH_BURNED,
    each,
    play,
)


def test_a_silent_seat_is_drawn_again_at_the_cost_of_the_silent() -> None:
    """One of two accounts is absent. If it is drawn first, it pays the second draw and loses a seat's fee,
    which burns.
    """
    found = play(Solver(), (Absent(), 1), (Verifier(), 1), runs=400)
    each(found, settled=1, fees=2, profit_submitter=-60 - 2 - 1)
    again = found["redrawn"]
    assert set(again) == {0, 1}
    assert again.mean() == pytest.approx(0.5, abs=4 * 0.5 / 20)
    assert (found["silent"] == again).all()
    assert found["profit_verifier_absent"] == pytest.approx(-SILENCE * again)
    assert found["burned"] == pytest.approx(2 * again)
    assert found["profit_verifier_honest"] == pytest.approx(2 - REPLAY - GAS_ATTEST)


def test_of_several_silent_accounts_one_pays_the_draw() -> None:
    """Three seats, three absent accounts and three honest ones. Each silent account loses a seat fee and a
    draw fee. Each redraw is paid with one of these draw fees, however many accounts were silent. The rest of
    what they lose burns.
    """
    found = play(Solver(), (Absent(), 3), (Verifier(), 3), verifiers=3, runs=400)
    each(found, settled=1, fees=6, profit_submitter=-60 - 6 - 1)
    silent, again = found["silent"], found["redrawn"]
    assert set(silent) == {0, 1, 2, 3}
    assert found["profit_verifier_absent"] == pytest.approx(-SILENCE * silent)
    assert found["burned"] == pytest.approx(SILENCE * silent - again)


@pytest.mark.parametrize("absent", [(Absent(), 4), (Copying(), 4)])
def test_a_task_whose_seats_stay_silent_stalls(absent: tuple[Verifier, int]) -> None:
    """Each of the two redraws is paid by a silent account. The solver gets its stake back, but not the price."""
    found = play(Solver(), absent, redraws=2)
    each(found, stalled=1, silent=2, redrawn=2, burned=2 * 2, profit_submitter=-1)
    each(found, profit_solver_honest=-60 - GAS_TASK)
    each(found, **{f"profit_verifier_{absent[0].name}": -2 * SILENCE})


def test_attested_seats_of_a_stalled_task_are_paid() -> None:
    found = play(Solver(), (Verifier(), 1), (Absent(), 9), verifiers=2, redraws=1, runs=400)
    assert (found["stalled"] == 1).all()
    seated = found["fees"] > 0
    assert 0 < seated.mean() < 1
    assert found["fees"][seated] == pytest.approx(2)
    assert found["profit_submitter"] == pytest.approx(np.where(seated, -2 - 1, -1))
    assert found["profit_verifier_honest"][seated] == pytest.approx(2 - REPLAY - GAS_ATTEST)


def test_a_seat_that_nobody_fills_voids_the_task_after_eight_draws() -> None:
    """There is one account for two seats. It attests and is paid, and the escrow pays eight draws."""
    found = play(Solver(), (Verifier(), 1), verifiers=2)
    each(found, void=1, redrawn=7, silent=0, fees=2, burned=0)
    each(found, profit_submitter=-8 - 2, profit_solver_honest=-60 - GAS_TASK)


def test_the_silent_pay_before_the_escrow_does() -> None:
    """The only account is silent and pays the first redraw, which finds nobody. The escrow pays the first draw
    and seven more redraws.
    """
    found = play(Solver(), (Absent(), 1))
    each(found, void=1, redrawn=8, silent=1, burned=2, profit_submitter=-8, profit_verifier_absent=-SILENCE)


def test_being_offline_is_silence() -> None:
    each(play(Solver(), (Verifier(), 9), downtime=1.0, redraws=3), stalled=1, silent=3)


def test_each_account_of_a_redraw_is_offline_by_itself() -> None:
    """With R redraws and downtime d, a task stalls with chance d^(R + 1)."""
    found = play(Solver(), (Verifier(), 9), downtime=0.5, redraws=2, runs=2000)
    assert found["stalled"].mean() == pytest.approx(1 / 8, abs=4 * (7 / 64 / 2000) ** 0.5)
    assert (found["stalled"] + found["settled"] == 1).all()


# ------------------------------------------------------------------ a beacon that stops, and retrainers


@pytest.mark.parametrize(("solver", "false"), [(Solver(), 0), (Lazy(1.0), 1), (Withholder(), 1)])
def test_a_task_that_is_never_drawn_pays_half_of_the_price(solver: Solver, false: int) -> None:
    """The beacon stops, so no account is drawn in time. The escrow still pays for the draw, because the draw
    is only delayed.
    """
    price = 60 if not false else 0
    found = play(solver, (Verifier(), 1), beacon_stops=1.0)
    each(found, stalled=1, false=false, escaped=0, burned=0, fees=0, profit_verifier_honest=0)
    each(found, profit_submitter=-price / 2 - 1)
    each(found, **{f"profit_solver_{solver.name}": -price / 2 - GAS_TASK})


def test_half_of_an_odd_price_is_rounded_down() -> None:
    found = play(Solver(), (Verifier(), 1), beacon_stops=1.0, training_cost=60 * TOKEN + 1)
    assert found["profit_submitter"] * TOKEN == pytest.approx(-30 * TOKEN - TOKEN, abs=1e-3)


def test_a_challenge_needs_no_draw() -> None:
    found = play(Lazy(1.0), (Verifier(), 1), bystanders=[(Bystander(1.0), 1)], beacon_stops=1.0)
    each(found, convicted=1, burned=SLASH_BURNED, profit_submitter=100 - 1)


@pytest.mark.parametrize("changed", [{"beacon_stops": 1.0}, {"downtime": 1.0, "redraws": 1}])
def test_whoever_retrains_a_stalled_task_convicts_it(changed: dict[str, Any]) -> None:
    """The retrainer replays all four segments. Each of these replays costs it a quarter of 66 tokens."""
    found = play(Lazy(0.25), (Verifier(), 9), bystanders=[(Retrainer(), 1)], segments=4, **changed)
    each(found, convicted=1, false=1, profit_bystander_retrainer=80 - REPLAY - GAS_DISPUTE)
    found = play(Solver(), (Verifier(), 9), bystanders=[(Retrainer(), 1)], segments=4, **changed)
    each(found, stalled=1, dismissed=0, profit_bystander_retrainer=-REPLAY)


def test_retrainers_leave_other_tasks_alone() -> None:
    found = play(Lazy(1.0), (Colluding(), 1), bystanders=[(Retrainer(), 1)])
    each(found, settled=1, escaped=1, profit_bystander_retrainer=0)
