"""One round of the smallest market: the capital cost of all locks, by hand and to the token unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from protocol.tasks.amounts import YEAR
from sim.agents.bystanders import Forgetful, Griefer
from sim.agents.solvers import Crashing, Lazy, Solver
from sim.agents.submitters import Challenging, Insider, Shill
from sim.agents.verifiers import Absent, Accusing, Verifier
from sim.engine.simulate import Columns
from sim.units import TOKEN
from tests.unit.sim.small_market import play

TIMES: Mapping[str, Any] = {"training_time": YEAR // 10, "audit_time": YEAR // 5, "game_time": YEAR // 20}
TRAINED, AUDITED, PLAYED = 0.1, 0.2, 0.1
"""Times in years. A game takes twice `game_time`, once for each side."""
ESCROW = 100 + 2 + 8
PENALTY, STAKE, SEAT, BOND = 10, 1000, 2 + 1, 20


def paid(
    solver: Solver, *verifiers: tuple[Verifier, int], rate: float = 1.0, **changed: Any
) -> dict[str, Any]:
    """The cost of each party's locks: how much less it earns than in a market with free capital."""
    free: Columns = play(solver, *verifiers, **TIMES, **changed)
    priced = play(solver, *verifiers, **TIMES, capital_rate=rate, **changed)
    for name, column in free.items():
        if not name.startswith("profit"):
            assert (priced[name] == column).all(), name
    return {
        name.removeprefix("profit_"): pytest.approx((column - priced[name]).mean(), abs=1e-6)
        for name, column in free.items()
        if name.startswith("profit")
    }


def test_a_task_that_settles() -> None:
    assert paid(Solver(), (Verifier(), 1)) == {
        "submitter": ESCROW * (TRAINED + AUDITED),
        "solver_honest": PENALTY * TRAINED + STAKE * AUDITED,
        "verifier_honest": SEAT * AUDITED,
    }


def test_the_rate_is_a_years() -> None:
    assert paid(Solver(), (Verifier(), 1), rate=0.25)["submitter"] == ESCROW * 0.3 / 4


def test_a_missed_deadline_ends_the_locks() -> None:
    assert paid(Crashing(1.0), (Verifier(), 1)) == {
        "submitter": ESCROW * TRAINED,
        "solver_crashing": PENALTY * TRAINED,
        "verifier_honest": 0,
    }


def test_nothing_is_locked_where_nobody_bids() -> None:
    found = paid(Solver(), (Verifier(), 1), budget=59 * TOKEN, restitution=0)
    assert found == dict.fromkeys(found, 0)


def test_a_submitter_that_wins_its_own_task_locks_both() -> None:
    found = paid(Solver(), (Verifier(), 1), submitter=Shill(0.5, 0.5))
    assert found["submitter"] == (ESCROW + PENALTY) * TRAINED
    assert found["solver_honest"] == 0


def test_a_game_holds_the_stake_and_the_bond() -> None:
    found = paid(Lazy(1.0), (Verifier(), 1))
    assert found["solver_lazy"] == PENALTY * TRAINED + STAKE * (AUDITED + PLAYED)
    assert found["verifier_honest"] == SEAT * AUDITED + BOND * PLAYED
    found = paid(Solver(), (Accusing(), 1))
    assert found["verifier_accusing"] == SEAT * AUDITED + BOND * PLAYED


def test_games_are_played_side_by_side() -> None:
    """Six bonds are locked, but only one stake. Bonds double only from the seventeenth game on."""
    found = paid(Solver(), (Verifier(), 1), bystanders=[(Griefer(1.0, games=3), 2)])
    assert found["solver_honest"] == PENALTY * TRAINED + STAKE * (AUDITED + PLAYED)
    assert found["bystander_griefer"] == 6 * BOND * PLAYED
    crowd = paid(Solver(), (Verifier(), 1), bystanders=[(Griefer(1.0, games=18), 1)])
    assert crowd["bystander_griefer"] == (16 + 2 + 4) * BOND * PLAYED


def test_commitments_that_are_not_opened_lock_bonds_alone() -> None:
    found = paid(Solver(), (Verifier(), 1), bystanders=[(Forgetful(1.0, commitments=2), 1)])
    assert found["bystander_forgetful"] == 2 * BOND * PLAYED
    assert found["solver_honest"] == PENALTY * TRAINED + STAKE * AUDITED


def test_submitters_that_challenge_lock_bonds() -> None:
    found = paid(Solver(), (Verifier(), 1), submitter=Challenging(2))
    assert found["submitter"] == ESCROW * (TRAINED + AUDITED) + 2 * BOND * PLAYED
    found = paid(Lazy(1.0), (Verifier(), 1), submitter=Insider())
    assert found["submitter"] == ESCROW * (TRAINED + AUDITED) + BOND * PLAYED


def test_each_account_that_is_drawn_locks_its_seat() -> None:
    """Three absent accounts are drawn in turn. The seat is then empty and locks nothing more."""
    assert paid(Solver(), (Absent(), 3))["verifier_absent"] == 3 * SEAT * AUDITED


def test_a_task_that_is_never_drawn_locks_no_seat() -> None:
    found = paid(Solver(), (Verifier(), 1), beacon_stops=1.0)
    assert found["verifier_honest"] == 0
    assert found["solver_honest"] == PENALTY * TRAINED + STAKE * AUDITED
