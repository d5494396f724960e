"""The replay finds errors planted in the engine: one unit off, a wrong account, or a wrong decision."""

from __future__ import annotations

import inspect
import re
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from protocol.chain.errors import Reverted
from protocol.errors import ExitCode
from protocol.tasks import bidding
from protocol.tasks.draws import words
from sim.errors import Disagreement, SimError
from sim.mechanism import auctions, booking
from sim.mechanism.booking import DRAWER, SUBMITTER
from sim.mechanism.ledger import Ledger
from sim.replay import auditing, tasks
from sim.replay.amounts import Amounts
from sim.replay.books import Books
from sim.replay.comparison import Comparison
from sim.replay.scenarios import scenario
from tests.chain.conftest import Replayed

pytestmark = pytest.mark.chain


def found(replayed: Replayed, name: str) -> Disagreement:
    """Replay a story that must end with a disagreement; returns it."""
    with pytest.raises(Disagreement) as raised:
        replayed(scenario(name), lambda _event: None)
    assert raised.value.exit_code is ExitCode.FRAUD
    return raised.value


def differences(error: Disagreement) -> dict[tuple[str, str], int]:
    """For each place where they differ, the chain's amount minus the engine's."""
    assert isinstance(error.comparison, Comparison)
    return {(line.place.owner, line.place.where): line.difference for line in error.comparison.differing}


def test_a_unit_of_a_reward(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    real = booking.convict

    def convict(ledger: Ledger, *arguments: Any, reward: Any, restitution: int) -> None:
        real(ledger, *arguments, reward=reward + 1, restitution=restitution)

    monkeypatch.setattr(booking, "convict", convict)
    error = found(replayed, "cheat")
    assert differences(error) == {("verifier 1 (honest)", "free"): -1, ("solver 1 (skipper)", "free"): 1}
    assert "convicted" in str(error)
    assert "difference -1" in str(error)


def test_the_reward_in_place_of_the_retrainers(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Books.convicted

    def early(self: Books, solver: int, challenger: int, *, late: bool) -> None:
        assert late
        real(self, solver, challenger, late=False)

    monkeypatch.setattr(Books, "convicted", early)
    assert differences(found(replayed, "retrained"))


def test_a_bond_that_does_not_double(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.replay.disputing.bond_of", lambda bond, _held: bond)
    found_at = differences(found(replayed, "crowd"))
    assert {where for _, where in found_at} == {"bond", "free"}


@pytest.mark.parametrize(("story", "attested"), [("vouched", True), ("unnamed", False), ("preempted", False)])
def test_other_claims_of_seats(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, story: str, attested: bool
) -> None:
    """The engine wrongly owes a fee to every attested seat that has not challenged, or to no seat."""
    monkeypatch.setattr(
        "sim.replay.shadow.fees_owed",
        lambda seats, spoke, *_segments: seats & ~spoke if attested else np.zeros_like(seats),
    )
    with pytest.raises((Disagreement, Reverted), match=r"another fee of a seat|NothingOwed"):
        replayed(scenario(story), lambda _event: None)


def test_a_rounding_of_a_bond(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the bond is rounded up instead of down."""
    real = booking.dismiss

    def dismiss(ledger: Any, rows: Any, solvers: Any, challengers: Any, bonds: Any) -> None:
        real(ledger, rows, solvers, challengers, bonds + 1)
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
    "compensate": "preempted",
    "pay_fees": "preempted",
    "burn_rest": "preempted",
    "forfeit": "forgetful",
    "dismiss": "false_challenge",
    "pay_seats": "honest",
    "pay_solver": "honest",
    "close_undrawn": "beacon_stops",
    "take_locks": "unopened",
    "pay_dropped": "stamped",
    "pay_answered": "slandered",
}
"""For each booking, a scenario in which it happens."""


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
"""Every movement of tokens in a booking: the booking, its scenario and the number of the movement."""


NOBODY = object()
"""A placeholder for the account of a burn, which has none."""


class Wrong:
    """A ledger that makes one movement wrongly."""

    def __init__(self, ledger: Ledger, number: int, how: str) -> None:
        self._ledger = ledger
        self._left = number
        self._how = how

    def amount(self, amount: int) -> Any:
        return self._ledger.amount(amount)

    def take(self, rows: Any, givers: Any, amounts: Any) -> None:
        self._ledger.take(rows, *self._moved(givers, amounts))

    def give(self, rows: Any, takers: Any, amounts: Any) -> None:
        self._ledger.give(rows, *self._moved(takers, amounts))

    def burn(self, rows: Any, amounts: Any) -> None:
        account, moved = self._moved(NOBODY, amounts)
        if account is NOBODY:
            self._ledger.burn(rows, moved)
        else:
            self._ledger.give(rows, account, moved)

    def _moved(self, account: Any, amounts: Any) -> tuple[Any, Any]:
        self._left -= 1
        if self._left != -1:
            return account, amounts
        if self._how == "account":
            # A single account becomes the drawer or submitter; each account of an array, the one before it.
            if not isinstance(account, int) and account is not NOBODY:
                return account - 1, amounts
            return (SUBMITTER if account is DRAWER else DRAWER), amounts
        return account, {"unit": amounts + 1, "drop": amounts * 0, "double": amounts * 2}[self._how]


def check_movement(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, movement: tuple[str, str, int], how: str
) -> None:
    """Check that the replay fails if this movement is made wrongly: the ledger no longer adds up, or the
    chain has booked something else.
    """
    name, story, number = movement
    real = getattr(booking, name)

    def wrong(ledger: Ledger, *arguments: Any, **amounts: Any) -> Any:
        return real(Wrong(ledger, number, how), *arguments, **amounts)

    monkeypatch.setattr(booking, name, wrong)
    with pytest.raises(SimError, match=r"disagree|adds up"):
        replayed(scenario(story), lambda _event: None)


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_unit_more_in_any_movement(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, movement: tuple[str, str, int]
) -> None:
    check_movement(replayed, monkeypatch, movement, "unit")


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["drop", "double", "account"])
@pytest.mark.parametrize("movement", MOVEMENTS)
def test_any_movement_forgotten_doubled_or_misplaced(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, movement: tuple[str, str, int], how: str
) -> None:
    check_movement(replayed, monkeypatch, movement, how)


@pytest.mark.parametrize(
    ("name", "payer"),
    [
        ("expire", "burned"),
        ("dismiss", "burned"),
        ("convict", "submitter"),
        ("compensate", "submitter"),
        ("pay_fees", "submitter"),
        ("burn_rest", "burned"),
        ("forfeit", "burned"),
        ("silence", "burned"),
        ("pay_seats", "submitter"),
        ("close_undrawn", "submitter"),
        ("take_locks", "burned"),
        ("pay_dropped", "submitter"),
        ("pay_answered", "submitter"),
    ],
)
def test_a_unit_that_goes_to_the_drawer(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, name: str, payer: str
) -> None:
    """The engine gives the drawer one unit that must be burned or left to the submitter. Its ledger still
    adds up, so only the comparison with the chain shows the error.
    """
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


def test_a_draw_that_nobody_pays_where_looks_are_given_up(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = booking.silence

    def silence(*arguments: Any, again: bool = True, **amounts: Any) -> None:
        del again
        real(*arguments, **amounts)

    monkeypatch.setattr(booking, "silence", silence)
    found_at = differences(found(replayed, "given_up"))
    assert ("vault", "burned") in found_at


@pytest.mark.parametrize("story", ["stamped", "slandered", "moot"])
def test_a_bond_of_an_accusation_that_is_not_locked(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, story: str
) -> None:
    """The engine does not lock the bond of an accusation. The replay finds this while the bond is open, not
    only when the bond goes to its final owner.
    """
    real = Books.lock
    cost = Amounts.of(scenario(story).parameters).game_cost

    def lock(self: Books, account: int, cause: str, amount: int) -> None:
        real(self, account, cause, 0 if amount == cost else amount)

    monkeypatch.setattr(Books, "lock", lock)
    error = found(replayed, story)
    assert "accuses" in str(error)
    assert {where for _, where in differences(error)} == {"bond", "free"}


def test_a_lock_of_the_least_for_the_storys(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Books.caught

    def caught(self: Books, account: int, looker: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Amounts, "seat_lock", lambda amounts, _terms: 4 * amounts.game_cost)
            real(self, account, looker)

    monkeypatch.setattr(Books, "caught", caught)
    assert differences(found(replayed, "unopened"))


def test_a_look_that_is_not_paid(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Books, "paid_look", lambda _self, _account: None)
    error = found(replayed, "looked")
    assert "looks of level 1 attested: 4" in str(error)
    assert {where for _, where in differences(error)} == {"escrow", "free"}


def test_other_looks(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine picks every candidate. It then finds the accounts with the first random words of the draw,
    which are meant for the picks.
    """
    monkeypatch.setattr(
        "sim.replay.looking.looked", lambda seed, candidates, _chance, _room: (list(candidates), words(seed))
    )
    assert "accounts of the looks" in str(found(replayed, "looked"))


def test_a_lock_that_two_looks_take(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine lets two looks take one lock; the contracts refuse the second look."""
    monkeypatch.setattr("sim.engine.looking._once", lambda level, _each: level)
    with pytest.raises(Reverted, match="NotAttested"):
        replayed(scenario("unopened"), lambda _event: None)


def test_a_lock_too_few(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stake is compared while it is locked, not only at the end."""
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
    """The engine undercuts by more than the contract demands, so the contract accepts the engine's bids. For
    a price one unit higher, the replay expects the error `BidTooHigh`. The contract gives another error,
    because it does not find this price too high either.
    """
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
