"""The juries of open tasks: what is claimed, who is drawn, how they voted, and who serves which items.

The state of the present jury is read from the chain each time the loop looks at it. Events tell which
accounts have claimed, and which accounts have voted yes in any of a task's juries. Earlier juries matter too,
because jurors serve items until the task is over.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from protocol.chain.events import Follower
from protocol.chain.receipts import Event
from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.juries import (
    UNAVAILABLE,
    JuryVerdict,
    is_juror,
    juror_number,
)
from protocol.node.addresses import Address, parsed
from protocol.node.party.exits import Observation
from protocol.tasks.task import Terms
from verifier.jury import Jury
from verifier.task_events import TaskEvents

TRIES = 3
"""Limit on a seat's claims of one item. If juries are silent, further claims cost bonds and decide nothing.
"""


@dataclass(slots=True)
class _Told:
    """What events have said about one task's juries, and the state of the present jury."""

    follower: Follower
    events: list[Event] = field(default_factory=list)
    """The events that are on the chain, in order. `claims`, `available` and `have` are computed from them."""
    claims: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """The items that were claimed, one entry per claim, by seat and account."""
    available: set[tuple[int, int]] = field(default_factory=set)
    """Seats and items for which the latest verdict was "available"."""
    have: dict[str, None] = field(default_factory=dict)
    """Accounts that voted yes, in the order of their votes."""
    stands: Jury | None = None

    def begin(self, events: Sequence[Event]) -> None:
        """Forget all events, and note `events` instead."""
        self.events, self.claims, self.available, self.have = [], {}, set(), {}
        for event in events:
            self.note(event)

    def lacks_events(self) -> bool:
        """Whether the present state shows a claim, or a juror's yes, that no event has told."""
        jury = self.stands
        if jury is None:
            return False
        claim = jury.claim
        if claim is not None and claim.item not in self.claims.get((claim.seat, claim.account), []):
            return True
        return any(jury.has_voted_yes(juror) and juror.account not in self.have for juror in jury.jurors)

    def note(self, event: Event) -> None:
        """Append the next event to `events`, and update the fields that are computed from the events."""
        self.events.append(event)
        about = event.arguments
        if event.name == "Claimed":
            self.claims.setdefault((about["seat"], about["account"]), []).append(about["item"])
        elif event.name == "Judged":
            found = {(about["seat"], about["item"])}
            self.available -= found
            self.available |= found if about["verdict"] == JuryVerdict.AVAILABLE else set()
        elif event.name == "Attested" and is_juror(about["seat"]) and about["digest"] != UNAVAILABLE:
            self.have[about["account"]] = None


class JuryEvents(TaskEvents[_Told]):
    """The juries of open tasks whose terms have jurors. `see` is called by the loop's thread, the other
    methods by any thread.
    """

    def see(self, seen: Observation, terms: Terms) -> bool:
        """Record the present state, and events since the last call. Returns whether failed requests should be
        repeated, because there is another source or a verdict. Raises ChainError.
        """
        if seen.audit is None or not seen.audit.drawn_at or not terms.jurors:
            return False
        client = self._client
        told = self._known(seen.view.task, seen.audit.drawn_at, _Told, client.audit, client.juries)
        stands = self._stands(seen, terms, told.stands)
        with self._lock:  # the present state is known even if events cannot be read
            told.stands = stands
        sources, is_judged = len(told.have), self._read(told)
        if told.lacks_events():
            told.follower = self._follower(seen.view.task, seen.audit.drawn_at, client.audit, client.juries)
            with self._lock:
                told.begin([])
            is_judged |= self._read(told)
        return len(told.have) > sources or is_judged

    def _read(self, told: _Told) -> bool:
        """Record events since the last call. Returns whether there is a verdict among them."""
        batch = told.follower.poll()
        with self._lock:
            if batch.rewound is not None:  # what is mined again comes again
                told.begin([event for event in told.events if event.log.block <= batch.rewound])
            for event in batch.events:
                told.note(event)
        return any(event.name == "Judged" for event in batch.events)

    def of(self, task: int) -> Jury | None:
        """The claim and the jury of a task; None if there is neither."""
        with self._lock:
            told = self._tasks.get(task)
            return None if told is None else told.stands

    def has_claimed(self, task: int, seat: Seat) -> bool:
        """Whether the account in this seat has made a claim."""
        with self._lock:
            told = self._tasks.get(task)
            return told is not None and (seat.number, seat.account) in told.claims

    def may_claim(self, task: int, seat: Seat, item: int, most: int) -> bool:
        """Whether the account in this seat should claim the item. It must have made fewer than `most` claims
        in all, and fewer than `TRIES` claims of this item. If it has claimed this item, and the latest
        verdict on this seat's claims of the item was "available", it should not claim the item again: another
        jury would say the same, and cost another bond.
        """
        with self._lock:
            told = self._tasks.get(task)
            items = [] if told is None else told.claims.get((seat.number, seat.account), [])
            answered = told is not None and item in items and (seat.number, item) in told.available
            return len(items) < most and items.count(item) < TRIES and not answered

    def has_voted_yes(self, task: int, accounts: Container[str]) -> bool:
        """Whether one of these accounts voted yes as a juror of a task, and so serves items."""
        with self._lock:
            told = self._tasks.get(task)
            return told is not None and any(account in accounts for account in told.have)

    def sources(self, task: int) -> list[Address]:
        """Addresses where accounts serve items as jurors of a task. Raises ChainError."""
        with self._lock:
            told = self._tasks.get(task)
            accounts = [] if told is None else list(told.have)
        found = (parsed(self._client.market.endpoint_of(account)) for account in accounts)
        return list(dict.fromkeys(address for address in found if address is not None))

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
        if live and same and before is not None and before.jurors:  # its jurors do not change
            return Jury(claim, view, before.jurors)
        seats = [board.seat(task, juror_number(slot)) for slot in range(terms.jurors)]
        return Jury(claim, view, [seat for seat in seats if not seat.is_empty])
