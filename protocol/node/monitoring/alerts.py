"""Alerts of a node: events that need an operator's attention, logged once and kept for the webhook.

The function that finds a task's alerts is pure (`changes`). No method of `Alerts` waits for the webhook, or
raises if the disk fails: an alert that cannot be written is kept in memory.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from protocol.node.monitoring.outbox import MOST, Outbox, Raised, Waiting

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Answer = TypeVar("Answer")

VERSION: Final = 1
"""Version of the posted document."""
MOST_TEXT: Final = 500
"""Maximum number of characters in an alert's text."""


class Alarm(StrEnum):
    """The kinds of alerts. Those up to LATE are about a task."""

    CHALLENGED = "challenged"
    SLASHED = "slashed"
    SETTLED = "settled"
    REFUNDED = "refunded"
    VOID = "void"
    UNPAID = "unpaid"
    DEADLINE = "deadline"
    SILENT = "silent"
    LATE = "late"
    RPC_STALE = "rpc_stale"
    DISK_LOW = "disk_low"
    STALLED = "stalled"
    ACCOUNT = "account"


ENDS: Final = frozenset({Alarm.SLASHED, Alarm.SETTLED, Alarm.REFUNDED, Alarm.VOID, Alarm.UNPAID})
"""Statuses of the market (ITaskMarket.Status) that cause an alert."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as last seen: its status in lower case, its number of committed checkpoints (`size`), its number
    of open games, and the chain's time when status or size last changed (`since`).
    """

    status: str
    size: int
    games: int
    since: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse the JSON that `text` returned."""
        return cls(**json.loads(text))

    @property
    def text(self) -> str:
        """The values as JSON."""
        return json.dumps(asdict(self))


def changes(
    before: Seen | None, now: Seen, silent_after: float, at: int
) -> Iterator[tuple[Alarm, str, str | None]]:
    """Yield the alerts that are due after one look at a task, each as kind, text and key. Some alerts would
    be found again by the next looks; these have a key, so that each is raised only once. Other alerts have
    the key None. `silent_after` is the number of seconds without progress before an alert, infinite if no
    progress is due; `at` is the chain's time.
    """
    if now.games > (0 if before is None else before.games):
        yield Alarm.CHALLENGED, f"{now.games} open game(s): answer in time or lose the stake", None
    if before is not None and now.status != before.status and now.status in ENDS:
        yield Alarm(now.status), f"status {now.status}, {now.size} checkpoints committed", None
    if at - now.since > silent_after:
        text = f"status {now.status}, no progress for {at - now.since} s; {now.size} checkpoints committed"
        yield Alarm.SILENT, text, f"since {now.since}"


class Alerts:
    """Raises alerts. If there is a webhook, the alerts are kept for it: in the `outbox` or, without an
    outbox, in memory. Callable from any thread. `about` is part of each document: the node, its chain and its
    account. A document's `id` lets a receiver recognise repeats.
    """

    def __init__(
        self,
        log: FilteringBoundLogger,
        registry: CollectorRegistry,
        about: Mapping[str, Any],
        outbox: Outbox | None = None,
        posts: bool = False,
    ) -> None:
        """`posts` is whether there is a webhook."""
        self._log = log
        self._about = dict(about)
        self._outbox = outbox
        self._posts = posts
        self._lock = Lock()
        self._seen = {} if outbox is None else {key: Seen.read(text) for key, text in outbox.seen().items()}
        self._unsaved: deque[Raised] = deque(maxlen=MOST)
        self._keys: set[str] = set()
        """Keys of the alerts that were raised in this process."""
        self.raised = Counter(
            "assay_node_alerts", "Alerts raised, by what they are about", ["alarm"], registry=registry
        )
        for alarm in Alarm:
            self.raised.labels(alarm.value)
        self.waiting = Gauge(
            "assay_node_alerts_waiting", "Alerts that wait for the webhook", registry=registry
        )

    def see(self, market: str, task: int, now: Seen, silent_after: float, at: int) -> None:
        """Raise the alerts due after a look at a task. `at` is the chain's time, and the caller sets
        `now.since` to it. If the status and size have not changed since the last look, the `since` of that
        look is kept instead.
        """
        with self._lock:
            before = self._seen.get((market, task))
            if before is not None and (before.status, before.size) == (now.status, now.size):
                now = replace(now, since=before.since)
            found = list(changes(before, now, silent_after, at))
            raised = [self._of(alarm, text, market, task, key) for alarm, text, key in found]
            self._seen[market, task] = now
            self._keep(raised, None if now == before else (market, task, now.text))

    def tell(
        self,
        alarm: Alarm,
        text: str,
        market: str | None = None,
        task: int | None = None,
        key: str | None = None,
    ) -> None:
        """Raise an alert. With a `key`, the alert is raised only once for that key."""
        with self._lock:
            self._keep([self._of(alarm, text, market, task, key)])

    def forget(self, market: str, task: int) -> None:
        """Forget a task that is over for good."""
        with self._lock:
            if self._seen.pop((market, task), None) is not None and self._outbox is not None:
                self._try(lambda outbox: outbox.forget(market, task))

    def last(self, market: str, task: int) -> Seen | None:
        """A task as last seen, perhaps by an earlier process; None if it was never seen."""
        return self._seen.get((market, task))

    def next(self) -> tuple[Waiting, Raised | None] | None:
        """The next alert to post, or None if none is found. Alerts that are kept only in memory come first.
        The second value of the pair is the alert as kept in memory, or None if the alert is in the outbox.
        """
        with self._lock:
            if self._unsaved:
                return Waiting(0, self._unsaved[0].document, 0), self._unsaved[0]
            found = self._try(lambda outbox: outbox.next())
            return None if found is None else (found, None)

    def posted(self, waiting: Waiting, unsaved: Raised | None) -> None:
        """Record that an alert was delivered."""
        with self._lock:
            if unsaved is not None:
                with suppress(ValueError):  # newer alerts may have displaced it meanwhile
                    self._unsaved.remove(unsaved)
            else:
                self._try(lambda outbox: outbox.posted(waiting.id))

    def tried(self, waiting: Waiting, unsaved: Raised | None) -> None:
        """Record that an alert was not delivered."""
        with self._lock:
            if unsaved is None:
                self._try(lambda outbox: outbox.tried(waiting.id))
            else:
                self._unsaved.rotate(-1)

    def count_waiting(self, oldest: int) -> int:
        """Drop alerts in the outbox that have waited since before `oldest`, and those beyond the outbox's
        limit. Returns how many alerts still wait, including those in memory.
        """
        with self._lock:
            dropped = self._try(lambda outbox: outbox.drop(int(time.time()), oldest))
            if dropped:
                self._log.error("alerts dropped that the webhook did not take", count=dropped)
            waiting = (self._try(lambda outbox: outbox.waiting()) or 0) + len(self._unsaved)
        self.waiting.set(waiting)
        return waiting

    def close(self) -> None:
        """Close the outbox. The next process posts the alerts in it."""
        if self._outbox is not None:
            self._outbox.close()

    def _of(self, alarm: Alarm, text: str, market: str | None, task: int | None, key: str | None) -> Raised:
        document = {
            "version": VERSION,
            "event": alarm.value,
            "id": uuid.uuid4().hex,
            "task": task,
            **self._about,
            **({} if market is None else {"market": market}),
            "at": int(time.time()),
            "text": text[:MOST_TEXT],
        }
        return Raised(None if key is None else f"{market}/{task}/{alarm}/{key}", document)

    def _keep(self, raised: list[Raised], seen: tuple[str, int, str] | None = None) -> None:
        fresh = [one for one in raised if one.key is None or one.key not in self._keys]
        self._keys |= {one.key for one in fresh if one.key is not None}
        for one in fresh:
            shown = one.document
            self.raised.labels(shown["event"]).inc()
            self._log.warning("alert", alarm=shown["event"], task=shown["task"], text=shown["text"])
        if not self._posts or (not fresh and seen is None):
            return
        try:
            if self._outbox is not None:
                self._outbox.put(fresh, int(time.time()), seen)
                return
        except sqlite3.Error as error:
            self._log.warning("alerts are kept in memory alone", error=str(error))
        self._unsaved += fresh

    def _try(self, what: Callable[[Outbox], Answer]) -> Answer | None:
        """Call `what` with the outbox and return its result; None if there is no outbox or the disk fails."""
        if self._outbox is None:
            return None
        try:
            return what(self._outbox)
        except sqlite3.Error as error:
            self._log.warning("the file of alerts", error=str(error))
            return None
