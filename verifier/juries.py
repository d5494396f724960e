"""The juries of open tasks: what is claimed, who sits in judgment, how they voted, and who serves what they have.

How a jury stands is asked of the chain at each look. Who has claimed, and who voted yes in any jury of a task, is told
by events: jurors serve until the task is over.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.views import ItemClaim, JuryView, Seat, TaskStatus
from protocol.dispute.juries import (
    MAX_CLAIMS,
    UNAVAILABLE,
    JuryVerdict,
    Objection,
    is_juror,
    juror_number,
)
from protocol.node.addresses import Address, parsed
from protocol.node.party.exits import Observation
from protocol.tasks.task import Terms
from verifier.informing import first_block


@dataclass(frozen=True, slots=True)
class Jury:
    """A claim of a task, None once it was dropped, and the jury that is to judge it, None once its draw has lapsed.
    `jurors` are those that somebody was drawn for.
    """

    claim: ItemClaim | None
    view: JuryView | None
    jurors: Sequence[Seat] = ()

    @property
    def objection(self) -> Objection | None:
        """The chunk that jurors are to open."""
        if self.claim is None or not self.claim.until:
            return None
        return Objection(self.claim.tensor, self.claim.walk)

    def has_voted(self, juror: Seat) -> bool:
        """Whether it did, yes or no."""
        return self.view is not None and _has(self.view.yes | self.view.no, juror)

    def owes_opening(self, juror: Seat) -> bool:
        """Whether it voted yes, was objected to, and has not opened."""
        if self.claim is None or self.view is None or self.objection is None:
            return False
        return _has(self.view.yes & ~self.claim.opened, juror)


@dataclass(slots=True)
class _Told:
    """What events have told of one task's juries, and how the present one stands."""

    follower: Follower
    claims: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """By seat and account the items that it has claimed, one for each claim."""
    available: set[tuple[int, int]] = field(default_factory=set)
    """Seats and items of which the latest verdict was that they are to be had."""
    have: dict[str, None] = field(default_factory=dict)
    """Accounts that voted yes, the first ones first."""
    stands: Jury | None = None


class Juries:
    """By task, where its terms have juries. `see` is for the loop's thread, the others for any."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: dict[int, _Told] = {}
        self._lock = threading.Lock()

    def see(self, seen: Observation, terms: Terms) -> bool:
        """Take note of what stands, and of what was told since the last call; whether what was asked for in vain is to
        be asked for again: there is another source, or a verdict. Raises ChainError.
        """
        if seen.audit is None or not seen.audit.drawn_at or not terms.jurors:
            return False
        told = self._told(seen, seen.audit.drawn_at)
        stands = self._stands(seen, terms, told.stands)
        with self._lock:  # what stands is known even where no event can be read
            told.stands = stands
        sources, verdicts = len(told.have), 0
        for event in told.follower.poll().events:
            about = event.arguments
            with self._lock:
                if event.name == "Claimed":
                    told.claims.setdefault((about["seat"], about["account"]), []).append(about["item"])
                elif event.name == "Judged":
                    verdicts += 1
                    found = {(about["seat"], about["item"])}
                    told.available -= found
                    told.available |= found if about["verdict"] == JuryVerdict.AVAILABLE else set()
                elif event.name == "Attested" and is_juror(about["seat"]) and about["digest"] != UNAVAILABLE:
                    told.have[about["account"]] = None
        return len(told.have) > sources or verdicts > 0

    def of(self, task: int) -> Jury | None:
        """The claim and the jury of a task, if there is one."""
        with self._lock:
            told = self._tasks.get(task)
            return None if told is None else told.stands

    def has_claimed(self, task: int, seat: Seat) -> bool:
        """Whether the account has claimed in this seat."""
        with self._lock:
            told = self._tasks.get(task)
            return told is not None and (seat.number, seat.account) in told.claims

    def may_claim(self, task: int, seat: Seat, item: int) -> bool:
        """Whether the account has a claim left in this seat, and no jury has answered it that the item is to be had:
        another one would cost another bond and say the same.
        """
        with self._lock:
            told = self._tasks.get(task)
            items = [] if told is None else told.claims.get((seat.number, seat.account), [])
            answered = told is not None and item in items and (seat.number, item) in told.available
            return len(items) < MAX_CLAIMS and not answered

    def has_voted_yes(self, task: int, accounts: Container[str]) -> bool:
        """Whether one of these accounts serves what it has as a juror of a task."""
        with self._lock:
            told = self._tasks.get(task)
            return told is not None and any(account in accounts for account in told.have)

    def sources(self, task: int) -> list[Address]:
        """Where accounts serve what they have as jurors of a task. Raises ChainError."""
        with self._lock:
            told = self._tasks.get(task)
            accounts = [] if told is None else list(told.have)
        found = (parsed(self._client.market.endpoint_of(account)) for account in accounts)
        return list(dict.fromkeys(address for address in found if address is not None))

    def forget(self, task: int) -> None:
        """The task is over."""
        with self._lock:
            self._tasks.pop(task, None)

    def _told(self, seen: Observation, drawn_at: int) -> _Told:
        task, board, juries = seen.view.task, self._client.audit, self._client.juries
        if task not in self._tasks:
            contracts = {board.address: board.contract, juries.address: juries.contract}
            first = first_block(self._client, drawn_at)
            topics = [None, task.to_bytes(32)]
            told = _Told(Follower(self._client.connection, contracts, first, topics=topics))
            with self._lock:
                self._tasks[task] = told
        return self._tasks[task]

    def _stands(self, seen: Observation, terms: Terms, before: Jury | None) -> Jury | None:
        assert seen.audit is not None, "the task is drawn"
        task, board = seen.view.task, self._client.audit
        claim = self._client.juries.claim_of(task)
        view = board.jury(task) if seen.audit.claimant else None
        if claim is None and view is None:
            return None
        if view is None or view.pending:
            return Jury(claim, view)
        live = seen.view.status is TaskStatus.SUBMITTED
        same = before is not None and before.view is not None and before.view.until == view.until
        if live and same and before is not None and before.jurors:  # who sits in it does not change
            return Jury(claim, view, before.jurors)
        seats = [board.seat(task, juror_number(slot)) for slot in range(terms.jurors)]
        return Jury(claim, view, [seat for seat in seats if not seat.is_empty])


def _has(bits: int, juror: Seat) -> bool:
    return bool(bits >> (juror.number - juror_number(0)) & 1)
