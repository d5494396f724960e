"""Errors planted in the engine are found by the replay: off by one unit, on a wrong account, or a wrong decision."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from protocol.errors import ExitCode
from protocol.tasks import bidding
from sim.errors import Disagreement, SimError
from sim.mechanism import auctions, booking, shares
from sim.mechanism.booking import DRAWER, SUBMITTER
from sim.mechanism.ledger import Ledger
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


def test_a_unit_of_a_slash(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "slash", one_more_rewarded(shares.slash))
    error = found(replayed, "cheat")
    assert differences(error) == {("verifier 1 (honest)", "free"): -1, ("vault", "burned"): 1}
    assert "convicted" in str(error)
    assert "difference -1" in str(error)


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
    found_at = differences(found(replayed, "honest"))
    assert set(found_at) == {("drawer", "free"), ("solver 1 (honest)", "free")}


FORGOTTEN = {
    "expire": "deadline",
    "pay_draws": "honest",
    "silence": "silent_seat",
    "convict": "cheat",
    "dismiss": "false_challenge",
    "pay_seats": "honest",
    "pay_solver": "honest",
    "close_undrawn": "beacon_stops",
}
"""Where each booking happens."""


def test_every_booking_has_a_scenario() -> None:
    bookings = {name for name, made in vars(booking).items() if isinstance(made, FunctionType)}
    assert bookings == set(FORGOTTEN)


@pytest.mark.parametrize(("name", "story"), FORGOTTEN.items())
def test_a_forgotten_booking(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, name: str, story: str
) -> None:
    monkeypatch.setattr(booking, name, lambda *_arguments, **_amounts: None)
    assert differences(found(replayed, story))


MOVEMENTS = [
    (name, story, number)
    for name, story in FORGOTTEN.items()
    for number in range(
        len(re.findall(r"ledger\.(?:take|give|burn)\(", inspect.getsource(getattr(booking, name))))
    )
]
"""Every line that moves tokens."""


class Generous:
    """A ledger that moves a unit more than it is told, in one movement."""

    def __init__(self, ledger: Ledger, number: int) -> None:
        self._ledger = ledger
        self._left = number

    def amount(self, amount: int) -> Any:
        return self._ledger.amount(amount)

    def take(self, rows: Any, givers: Any, amounts: Any) -> None:
        self._ledger.take(rows, givers, self._more(amounts))

    def give(self, rows: Any, takers: Any, amounts: Any) -> None:
        self._ledger.give(rows, takers, self._more(amounts))

    def burn(self, rows: Any, amounts: Any) -> None:
        self._ledger.burn(rows, self._more(amounts))

    def _more(self, amounts: Any) -> Any:
        self._left -= 1
        return amounts + self._ledger.amount(self._left == -1)


@pytest.mark.parametrize(("name", "story", "number"), MOVEMENTS)
def test_a_unit_more_in_any_movement(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, name: str, story: str, number: int
) -> None:
    """The ledger does not add up any more, or the chain has booked something else."""
    real = getattr(booking, name)

    def generous(ledger: Ledger, *arguments: Any, **amounts: Any) -> Any:
        return real(Generous(ledger, number), *arguments, **amounts)

    monkeypatch.setattr(booking, name, generous)
    with pytest.raises(SimError, match=r"disagree|adds up"):
        replayed(scenario(story), lambda _event: None)


@pytest.mark.parametrize(
    ("name", "payer"),
    [
        ("expire", "burned"),
        ("dismiss", "burned"),
        ("convict", "burned"),
        ("silence", "burned"),
        ("pay_seats", "submitter"),
        ("close_undrawn", "submitter"),
    ],
)
def test_a_unit_that_goes_to_the_drawer(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, name: str, payer: str
) -> None:
    """The ledger adds up, and the chain alone tells: a unit less is burned, or the submitter has one less."""
    real = getattr(booking, name)

    def other(ledger: Ledger, *arguments: Any, **amounts: Any) -> Any:
        done = real(ledger, *arguments, **amounts)
        ledger.free[DRAWER, 0] += 1
        if payer == "burned":
            ledger.burned[0] -= 1
        else:
            ledger.free[SUBMITTER, 0] -= 1
        return done

    monkeypatch.setattr(booking, name, other)
    found_at = differences(found(replayed, FORGOTTEN[name]))
    assert sorted(found_at.values()) == [-1, 1]
    assert ("drawer", "free") in found_at


def test_the_fee_of_a_segment_for_that_of_a_seat(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Amounts, "seat_fee", lambda self, _terms: self.audit_fee)
    monkeypatch.setattr(Amounts, "seat_lock", lambda self, _terms: 2 * self.audit_fee + self.draw_fee)
    assert differences(found(replayed, "honest"))


def test_a_lock_too_few(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The open stake is compared too, not only what ends."""
    monkeypatch.setattr(tasks, "STAKE", "bond")
    found_at = differences(found(replayed, "honest"))
    assert {where for _, where in found_at} == {"stake", "bond"}


def test_another_draw(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.replay.drawing.holders", lambda slots: list(reversed(range(len(slots)))))
    assert "accounts of the seats" in str(found(replayed, "silent_seat"))


def test_other_segments(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "segments_of", lambda _seed, _seat, _segments, each: [1] * each)
    assert "segments of the seats" in str(found(replayed, "honest"))


def test_another_winner(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.replay.shadow.descending", lambda asks, budget: _last(asks, budget))
    assert "winner" in str(found(replayed, "market"))


def test_another_undercut(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger one, which the contract takes as well."""
    monkeypatch.setattr(bidding, "FIRST_PERCENT", 3)
    auctions._ladder.cache_clear()
    try:
        assert "one unit higher: expected BidTooHigh, chain NotEnoughFree" in str(
            found(replayed, "late_bids")
        )
    finally:
        auctions._ladder.cache_clear()


def _last(asks: Any, budget: Any) -> Any:
    sold = asks.max(axis=0) <= budget
    return sold | True, np.array([len(asks) - 1]), asks[-1]
