"""Errors planted in the engine are found by the replay: off by one unit, on a wrong account, or a wrong decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from protocol.errors import ExitCode
from protocol.tasks import bidding
from sim.errors import Disagreement
from sim.mechanism import auctions, booking, shares
from sim.mechanism.booking import DRAWER
from sim.replay import auditing, tasks
from sim.replay.amounts import Amounts
from sim.replay.comparison import Comparison
from sim.replay.scenarios import scenario
from tests.chain.conftest import Replayed

pytestmark = pytest.mark.chain


def found(replayed: Replayed, name: str) -> Disagreement:
    """The disagreement that a story ends with."""
    with pytest.raises(Disagreement) as raised:
        replayed(scenario(name), lambda _event: None)
    assert raised.value.exit_code is ExitCode.FRAUD
    return raised.value


def differences(error: Disagreement) -> dict[tuple[str, str], int]:
    """What the chain holds more, by place."""
    assert isinstance(error.comparison, Comparison)
    return {(line.place.owner, line.place.where): line.difference for line in error.comparison.differing}


def one_more_rewarded(real: Callable[..., shares.Slash]) -> Callable[..., shares.Slash]:
    """A unit of the burned part goes to the challenger."""

    def slash(*arguments: Any) -> shares.Slash:
        split = real(*arguments)
        return split._replace(rewarded=split.rewarded + 1, burned=split.burned - 1)

    return slash


def one_more_each(real: Callable[..., shares.Settlement]) -> Callable[..., shares.Settlement]:
    """Every attestation earns a unit more."""

    def settle(*arguments: Any) -> shares.Settlement:
        split = real(*arguments)
        return split._replace(each=split.each + 1)

    return settle


def test_a_unit_of_a_slash(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "slash", one_more_rewarded(shares.slash))
    error = found(replayed, "cheat")
    assert differences(error) == {("verifier 1 (honest)", "free"): -1, ("vault", "burned"): 1}
    assert "convicted" in str(error)
    assert "difference -1" in str(error)


def test_a_unit_of_a_fee(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "settle", one_more_each(shares.settle))
    found_at = differences(found(replayed, "missed_draw"))
    assert found_at == {("verifier 1 (honest)", "free"): -7, ("submitter", "free"): 7}


def test_a_rounding_of_a_bond(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the bond rounded up instead of down."""
    real = booking.dismiss

    def dismiss(ledger: Any, rows: Any, solvers: Any, challengers: Any, bond: int) -> None:
        real(ledger, rows, solvers, challengers, bond + 1)
        ledger.give(rows, challengers, ledger.amount(1))
        ledger.burn(rows, ledger.amount(-1))

    monkeypatch.setattr(booking, "dismiss", dismiss)
    found_at = differences(found(replayed, "false_challenge"))
    assert sorted(found_at.values()) == [-1, 1]


def test_a_fee_on_a_wrong_account(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking, "DRAWER", DRAWER + 1)
    found_at = differences(found(replayed, "absent"))
    assert set(found_at) == {("drawer", "free"), ("solver 1 (honest)", "free")}


def test_a_forgotten_burn(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking, "expire", lambda *_arguments: None)
    assert set(differences(found(replayed, "deadline"))) == {
        ("solver 1 (crashing)", "free"),
        ("vault", "burned"),
    }


def test_a_stake_that_is_not_burned(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking, "lose_draw", lambda *_arguments: None)
    error = found(replayed, "draw_lost")
    stake = Amounts.of(scenario("draw_lost").parameters).stake
    assert differences(error) == {("solver 1 (honest)", "free"): -stake, ("vault", "burned"): stake}


def test_a_lock_too_few(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The open stake is compared too, not only what ends."""
    monkeypatch.setattr(tasks, "STAKE", "bond")
    found_at = differences(found(replayed, "honest"))
    assert {where for _, where in found_at} == {"stake", "bond"}


def test_a_draw_that_is_not_raised(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "raised_segments", lambda each, *_arguments: each)
    assert "duties of the draw" in str(found(replayed, "missed_draw"))


def test_another_draw(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.replay.drawing.holders", lambda _slots: [1, 0])
    assert "duties of the draw" in str(found(replayed, "honest"))


def test_another_idea_of_enough(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(drawn: Any, _done: Any, _matches: int) -> Any:
        return np.ones(drawn.due.shape[2], dtype=np.bool_)

    monkeypatch.setattr(tasks, "satisfied", everything)
    assert "attestations suffice" in str(found(replayed, "absent"))


def test_another_winner(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.replay.shadow.descending", lambda asks, budget: _last(asks, budget))
    assert "winner" in str(found(replayed, "market"))


def test_another_undercut(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger one, which the contract takes as well."""
    monkeypatch.setattr(bidding, "FIRST_PERCENT", 3)
    auctions._ladder.cache_clear()
    try:
        assert "one unit higher: expected BidTooHigh, chain NotEnoughFree" in str(
            found(replayed, "small_price")
        )
    finally:
        auctions._ladder.cache_clear()


def _last(asks: Any, budget: Any) -> Any:
    sold = asks.max(axis=0) <= budget
    return sold | True, np.array([len(asks) - 1]), asks[-1]
