"""Fetches and checks the bundles of tasks that may be bid on, in the background.

A submitter's server may be arbitrarily slow, so each attempt to fetch a bundle has a time limit. The limit is
the time that the failed attempts for the task took together (`Fetching.seconds_lost`), but at most the time
until bidding ends, and never less than `FIRST_TRY` seconds. An attempt that received a wrong file counts for
more than it took.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from protocol.tasks.bundles import BundleUnavailable, WrongFile
from protocol.tasks.task import Terms
from solver.background import in_thread
from solver.bundle_cache import Candidates, fetch_candidate, is_here
from solver.context import Context

FETCHES = 4
"""Limit on the bundles fetched at a time. One more may be loaded if it is already in this solver's folders,
because loading waits for no server.
"""
FIRST_TRY = 30.0
"""The time limit of a task's first fetch in seconds, and the least limit of its later fetches. Slow servers
can delay the first fetch of another task by this long.
"""
LEAST_REST = 1.0
"""Minimum seconds to wait after a server has sent something other than the bundle."""


@dataclass
class _Fetch:
    terms: Terms
    future: Future[None]
    taken: bool = False


class Fetching:
    """The candidate bundles of one solver, by task. For one thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._bundles = Candidates(context.candidates)
        self._fetches: dict[int, _Fetch] = {}  # those that failed go when their result is taken
        self._began: dict[int, float] = {}  # when the last fetch for a task began
        self._lost: dict[int, float] = {}  # seconds that a task's failed fetches took

    @property
    def running(self) -> list[Future[None]]:
        """The fetches whose result has not been taken yet."""
        return [fetch.future for fetch in self._fetches.values() if not fetch.taken]

    def terms(self, task: int) -> Terms | None:
        """The terms for which a task's bundle was fetched or is being fetched; None if there is no such fetch."""
        fetch = self._fetches.get(task)
        return None if fetch is None else fetch.terms

    def seconds(self, task: int) -> float:
        """Seconds since the last fetch for a task began; 0 if none has begun."""
        now = time.monotonic()
        return now - self._began.get(task, now)

    def seconds_lost(self, task: int) -> float:
        """Seconds that a task's failed fetches took."""
        return self._lost.get(task, 0.0)

    def fetch(self, task: int, terms: Terms, left: int) -> Future[None] | None:
        """Return the fetch of a task's bundle if the fetch has ended, otherwise None. Start the fetch if
        needed, and start it again if the task's number has passed to another task. `left` is the seconds
        until the end of the bidding.
        """
        fetch = self._fetches.get(task)
        if fetch is None:
            if len(self.running) < FETCHES + is_here(self._context, terms):
                self._begin(task, terms, max(FIRST_TRY, min(self.seconds_lost(task), left)))
            return None
        if not fetch.future.done():
            return None
        if fetch.terms != terms:
            self.drop(task)
            return None
        fetch.taken = True
        if fetch.future.exception() is not None:
            del self._fetches[task]
        return fetch.future

    def failed(self, task: int, error: BundleUnavailable) -> None:
        """Add the time of a task's last fetch to the task's lost time. If the server sent a wrong file, which
        costs little time, the lost time at least doubles, and grows by at least `LEAST_REST`.
        """
        lost = self.seconds_lost(task)
        if isinstance(error, WrongFile):
            # A wrong file costs bandwidth but little time: so the pause doubles each time.
            self._began[task] -= max(LEAST_REST, lost)
        self._lost[task] = lost + self.seconds(task)

    def keep(self, tasks: Iterable[tuple[int, Terms]]) -> None:
        """Delete the bundles that an earlier process left and that none of these tasks needs."""
        for task, terms in tasks:
            self._bundles.want(task, terms.bundle_hash)
        self._bundles.sweep()

    def drop(self, task: int) -> None:
        """Drop the bundle of a task, once no fetch is writing it any more."""
        fetch = self._fetches.pop(task, None)
        if fetch is None:
            self._bundles.drop(task)
        else:
            fetch.future.add_done_callback(lambda _: self._bundles.drop(task))

    def forget(self, task: int) -> None:
        """Drop all data about a task."""
        self._began.pop(task, None)
        self._lost.pop(task, None)
        self.drop(task)

    def _begin(self, task: int, terms: Terms, seconds: float) -> None:
        self._bundles.want(task, terms.bundle_hash)
        self._began[task] = time.monotonic()
        self._fetches[task] = _Fetch(terms, in_thread(lambda: fetch_candidate(self._context, terms, seconds)))
