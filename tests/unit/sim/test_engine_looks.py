"""Second looks in the smallest market, computed by hand. By default, every level picks every segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from protocol.tasks.amounts import YEAR
from sim.agents.bystanders import Bystander
from sim.agents.population import population
from sim.agents.solvers import Lazy, Solver
from sim.agents.verifiers import Absent, Hiding, LazyLooker, SilentLooker, Slandering, Trusting, Verifier
from sim.engine.market import Market
from sim.engine.simulate import Columns
from sim.engine.streams import streams
from sim.errors import ParameterError
from sim.mechanism.booking import SUBMITTER
from sim.theory import looks_by_level
from sim.units import TOKEN
from tests.unit.sim.small_market import GAS_ATTEST, GAS_DEFENCE, GAS_TASK, REPLAY, SILENCE, SMALL, each, play

LOCK = 40
LOOKED: dict[str, Any] = {
    "look_chance": 1.0,
    "seat_lock": LOCK * TOKEN,
    "gas_reveal": 150_000,
    "gas_accuse": 500_000,
}
REVEAL, ACCUSE, FEE, DRAW = 0.15, 0.5, 2, 1
GAME_COST = 3


def looked(*verifiers: Any, solver: Solver | None = None, **changed: Any) -> Columns:
    return play(solver or Solver(), *verifiers, **{**LOOKED, **changed})


def submitted(looks: int, draws: int) -> float:
    """The profit of a submitter that pays the price, one seat and the draw of that seat. The submitter also
    pays for looks (`looks` is their number) and for draws of looks (`draws` is their number).
    """
    return -(60 + FEE + DRAW + looks * FEE + draws * DRAW)


def test_one_segment_has_one_look_at_most_and_it_is_paid_at_once() -> None:
    """There is one seat with one segment. The first level's draw picks this segment, and no further look is
    possible.
    """
    found = looked((Verifier(), 2))
    each(found, settled=1, looks=1, caught=0, profit_submitter=submitted(1, 1))
    each(found, profit_verifier_honest=2 * (FEE - REPLAY - GAS_ATTEST) - REVEAL)


def test_a_rubber_stamp_that_is_looked_at_loses_lock_and_fee() -> None:
    """One of the two accounts is a rubber stamp. It has the seat in about half of the runs, and is the looker
    in the others.
    """
    found = looked((Verifier(), 1), (Trusting(), 1), runs=64)
    caught = found["caught"] == 1
    assert 0 < caught.sum() < 64
    honest, stamp = (found[f"profit_verifier_{name}"] for name in ("honest", "lazy"))
    assert stamp[caught] == pytest.approx(-LOCK - GAS_ATTEST - REVEAL)
    dropped = GAME_COST + ACCUSE
    assert honest[caught] == pytest.approx(LOCK / 2 + FEE - REPLAY - GAS_ATTEST - dropped)
    assert found["burned"][caught] == pytest.approx(LOCK / 2)
    assert found["profit_solver_honest"][caught] == pytest.approx(-GAS_TASK + GAME_COST - GAS_DEFENCE)
    assert found["profit_submitter"][caught] == pytest.approx(submitted(1, 1) + FEE)
    assert stamp[~caught] == pytest.approx(FEE - GAS_ATTEST)
    assert (found["settled"] == 1).all()


def test_who_hides_loses_its_lock_to_any_looker() -> None:
    """Any looker catches an account that hides, even a lazy looker: neither a replay nor an accusation is needed."""
    found = looked((Hiding(), 2))
    each(found, settled=1, caught=1, burned=LOCK / 2)
    each(found, profit_verifier_hiding=-LOCK / 2 + FEE - 2 * GAS_ATTEST, profit_solver_honest=-GAS_TASK)


def test_who_accuses_what_is_right_pays_for_it() -> None:
    """A looker that accuses an account of a segment that is right pays the cost of a game twice: to the
    solver, and to the accused account, which answers the accusation.
    """
    found = looked((Slandering(), 2))
    each(found, settled=1, caught=0, burned=0, profit_solver_honest=-GAS_TASK + GAME_COST - GAS_DEFENCE)
    spent = 2 * (REPLAY + GAS_ATTEST) + 2 * REVEAL + ACCUSE
    each(found, profit_verifier_slandering=2 * FEE - GAME_COST - spent)


def test_a_draw_of_looks_is_paid_also_where_the_solver_is_convicted_before() -> None:
    """Every seat is attested, so the draw of looks is paid. No looks follow, because a bystander convicts the
    solver.
    """
    found = play(Lazy(1.0), (Trusting(), 2), **LOOKED, bystanders=[(Bystander(chance=1.0), 1)])
    each(found, convicted=1, looks=0, profit_submitter=100 - 2 * DRAW, profit_verifier_lazy=-GAS_ATTEST)


def test_lazy_lookers_catch_nobody() -> None:
    found = looked((Trusting(), 1), (LazyLooker(), 1), runs=64)
    each(found, settled=1, looks=1, caught=0)


def test_silent_lookers_are_drawn_again_three_times_and_lose_what_a_silent_seat_does() -> None:
    """Of five accounts, one has the seat. Three lookers are silent, then the look lapses and the task settles."""
    found = looked((SilentLooker(), 5))
    each(found, settled=1, looks=0, caught=0, silent=3, redrawn=0)
    # Silent lookers pay two redraws. The draw fee of the third one burns with the rest.
    each(found, burned=3 * SILENCE - 2 * DRAW, profit_submitter=submitted(0, 1))
    each(found, profit_verifier_silent_looker=FEE - REPLAY - GAS_ATTEST - 3 * SILENCE)


def test_a_look_for_which_nobody_is_left_lapses_at_once() -> None:
    found = looked((Trusting(), 1))
    each(found, settled=1, looks=0, caught=0, silent=0, profit_submitter=submitted(0, 1))


def test_a_redrawn_looker_looks() -> None:
    found = looked((Trusting(), 1), (SilentLooker(), 1), (Verifier(), 1), runs=256)
    assert {0, 1} == set(found["caught"]) == set(found["silent"])
    both = (found["silent"] == 1) & (found["caught"] == 1)
    assert both.any()
    assert found["profit_verifier_silent_looker"][both] == pytest.approx(-SILENCE)


def test_a_look_that_finds_the_solver_wrong_is_one_more_audit() -> None:
    """The account that attested the segment loses its fee but keeps its lock."""
    found = looked((Trusting(), 1), (Verifier(), 1), solver=Lazy(1.0), runs=64)
    stamped = found["silent"] == 0
    assert stamped.all()
    each(found, convicted=1, caught=0)
    looks = found["looks"] == 1
    assert 0 < looks.sum() < 64
    assert found["profit_verifier_lazy"][looks] == pytest.approx(-GAS_ATTEST - REVEAL)
    assert found["profit_verifier_honest"][looks] == pytest.approx(
        50 + GAME_COST + FEE - REPLAY - GAS_ATTEST - 0.6
    )


def test_nobody_looks_where_a_seat_is_empty_or_a_game_is_won() -> None:
    each(looked((Absent(), 2), redraws=3), looks=0, stalled=1)
    each(looked((Verifier(), 2), solver=Lazy(1.0)), looks=0, convicted=1)


def test_a_look_locks_as_long_as_a_seat() -> None:
    times: dict[str, Any] = {"audit_time": YEAR // 5, "training_time": YEAR // 10}
    free, priced = (looked((Verifier(), 2), capital_rate=rate, **times) for rate in (0.0, 1.0))
    cost = {
        name: (free[name] - priced[name]).mean() for name in ("profit_verifier_honest", "profit_submitter")
    }
    assert cost["profit_verifier_honest"] == pytest.approx(2 * LOCK * 0.2)
    assert cost["profit_submitter"] == pytest.approx((100 + 2 + 8 + 2 + 4) * 0.3)


def test_four_levels_and_as_many_looks_as_segments() -> None:
    """If the first level picks all three seats, no looks are left for the higher levels. If it does not pick
    all seats, the higher levels may pick looks too.
    """
    found = looked((Verifier(), 20), verifiers=3, segments=3)
    each(found, looks=3, profit_submitter=-(60 + 3 * FEE + DRAW + 3 * FEE + DRAW))
    some = looked((Verifier(), 40), verifiers=8, segments=3, look_chance=0.5, runs=512)
    assert some["looks"].max() == 8
    expected = looks_by_level(slots=8, chance=0.5).sum()
    assert expected < 8 * (0.5 + 0.25 + 0.125 + 0.0625)
    assert some["looks"].mean() == pytest.approx(expected, abs=0.4)


def test_a_seat_of_several_segments_loses_its_lock_once() -> None:
    found = looked((Trusting(), 1), (Verifier(), 3), segments=3, segments_per_verifier=3, runs=64)
    caught = found["caught"] > 0
    assert caught.any()
    assert found["caught"].max() == 1
    assert found["profit_verifier_lazy"][caught] == pytest.approx(-LOCK - GAS_ATTEST - 3 * REVEAL)


def test_nothing_is_drawn_without_looks() -> None:
    """Without looks, the gas costs of revealing and accusing change no result."""
    plain = play(Solver(), (Verifier(), 3), (Trusting(), 3), runs=64, downtime=0.2)
    never = play(
        Solver(), (Verifier(), 3), (Trusting(), 3), runs=64, downtime=0.2, gas_reveal=1, gas_accuse=1
    )
    for name, column in plain.items():
        assert (column == never[name]).all(), name
    assert not plain["looks"].any()


def test_the_escrow_holds_what_looks_may_cost() -> None:
    with_looks = SMALL.with_values({"look_chance": 0.1})
    assert with_looks.escrow - SMALL.escrow == 2 * TOKEN + 4 * TOKEN
    market = Market(
        with_looks,
        population([(Solver(), 1)], [(Verifier(), 1)]),
        4,
        1,
        streams(np.random.SeedSequence(0), 4),
    )
    assert (market.books.ledger.free[SUBMITTER] >= with_looks.escrow).all()


def test_looks_at_more_than_32_segments_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most 32 segments of all seats with looks, got 36"):
        SMALL.with_values(
            {"look_chance": 0.1, "verifiers": 9, "segments": 4, "segments_per_verifier": 4, "stake": 10**10}
        )
