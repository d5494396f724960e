"""What a verifier owes and is owed, decided from what the chain says. Pure: no clock, no chain, no database in here.

An action is a call that anyone may make. The verifier makes the ones that move a task on, and leaves those that are the
solver's own interest to the solver for `GRACE` seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from protocol.chain.header import HISTORY
from protocol.chain.views import Duty, TaskStatus, TaskView
from protocol.tasks.task import Terms

GRACE = 5
"""Seconds in which somebody with more interest in it may make a call first: a reverted call costs gas."""


class Action(StrEnum):
    """A call that moves a task on."""

    ASSIGN = "assign"
    EXPIRE = "expire"
    DRAW = "draw"
    MISSED = "missed"
    SETTLE = "settle"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Observation:
    """A task as the chain shows it at one moment. `now` is the chain's time, `block` its height; `drawn_at` is 0 before
    the draw. `satisfied` and `lost` are what the audit board says; they matter only once the window is over.
    """

    view: TaskView
    terms: Terms
    now: int
    block: int
    drawn_at: int = 0
    duties: Sequence[Duty] = ()
    satisfied: bool = False
    lost: bool = False


def action(seen: Observation) -> Action | None:
    """The call that is due, if any."""
    view, now = seen.view, seen.now
    if view.status is TaskStatus.BIDDING:
        return Action.ASSIGN if now > view.bids_until + GRACE else None
    if view.status is TaskStatus.TRAINING:
        return Action.EXPIRE if now > view.train_until + GRACE and not view.open_games else None
    if view.status is not TaskStatus.SUBMITTED:
        return None
    if not seen.drawn_at and not seen.lost:
        return _draw(seen)
    if now <= view.challenge_until or view.open_games:
        return None
    if seen.drawn_at and seen.satisfied:
        return Action.SETTLE
    return Action.VOID if now > view.challenge_until + GRACE else None


def own_duties(seen: Observation, account: str) -> list[Duty]:
    """The account's duties that can still be attested."""
    in_time = seen.now <= seen.drawn_at + seen.terms.attest_period
    if seen.view.status is not TaskStatus.SUBMITTED or not seen.drawn_at or not in_time:
        return []
    return [duty for duty in seen.duties if duty.verifier == account and not duty.attested]


def drawn_segments(seen: Observation, account: str) -> list[int]:
    """The segments that the account was drawn for and has not attested, while they may be challenged: a difference that
    comes to light too late to attest is still accused.
    """
    own = {duty.segment for duty in seen.duties if duty.verifier == account and not duty.attested}
    return sorted(own) if open_segments(seen) else []


def open_segments(seen: Observation) -> range:
    """The segments of a submitted task while they may be challenged: what a whistleblower replays."""
    view = seen.view
    submitted = view.status is TaskStatus.SUBMITTED and seen.now <= view.challenge_until
    return range(1, view.size) if submitted else range(0)


def _draw(seen: Observation) -> Action | None:
    """The draw needs its block's hash, which the next block knows."""
    if seen.block < seen.view.draw_block:
        return None
    return Action.DRAW if seen.block < seen.view.draw_block + HISTORY else Action.MISSED
