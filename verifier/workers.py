"""The workers of a verifier under one deployment: one `Jobs` for each kind of work, so that no kind delays
another.
"""

from __future__ import annotations

import math
from itertools import chain

from verifier.jobs import Due, Failure, Jobs
from verifier.settings import VerifierSettings

ANSWERS = 2
"""Number of jobs for looks and jurors that run side by side. They replay segments for answers and
accusations, or hash items for votes.
"""
SENDERS = 4
"""Number of short jobs that run side by side, apart from those of games: actions and attestations, each with
one transaction. Calls that advance tasks have as many workers, which they share with nothing else.
"""


class Workers:
    """All kinds of work except games. Used by the loop's thread. `due` is given a job's deadline, and makes
    it the deadline of the computing of that job. It is used for the jobs of `replays` and `answers` only.
    """

    def __init__(self, settings: VerifierSettings, due: Due) -> None:
        self.fetches = Jobs(settings.fetches, longest_rest=math.inf)
        self.replays = Jobs(settings.replays, longest_rest=math.inf, due=due, queued=True)
        self.sends = Jobs(SENDERS, longest_rest=8)
        self.calls = Jobs(SENDERS, longest_rest=8)
        """Separate jobs, so that strangers' tasks, however many are due at once, do not delay duties."""
        self.answers = Jobs(ANSWERS, longest_rest=8, due=due, queued=True)
        """Jobs for looks and jurors. They have less time than replays. So they are kept apart from the
        replays: they neither wait for replays to end, nor pause because a replay failed.
        """
        self.informs = Jobs(1, longest_rest=8)
        """Separate jobs, so that strangers' salts do not delay attestations."""
        self.keeps = Jobs(1, longest_rest=math.inf)
        """Separate jobs, so that fetching further states for claimants does not delay duties."""

    @property
    def busy(self) -> int:
        """The number of jobs in progress that send transactions, that inform on seats whose salts were
        offered, or that work for looks and jurors.
        """
        return sum(work.busy for work in (*self._sending, self.answers))

    @property
    def computing(self) -> bool:
        """Whether a job of `fetches`, `replays` or `keeps` is in progress."""
        return any(work.busy for work in (self.fetches, self.replays, self.keeps))

    def collect(self) -> list[Failure]:
        """Remove the finished jobs, and return the failed ones."""
        works = (*self._sending, self.answers, self.keeps, self.replays, self.fetches)
        return list(chain.from_iterable(work.collect() for work in works))

    def forget(self, task: int) -> None:
        """Drop the pauses of a task that is over."""
        for work in (self.fetches, self.replays, self.answers, self.keeps, *self._sending):
            work.rests.forget(task)

    def close(self) -> None:
        """Stop all jobs."""
        self.fetches.abandon()  # files already on disk are not fetched again
        self.keeps.abandon()
        for work in (*self._sending, self.answers, self.replays):
            work.close()

    @property
    def _sending(self) -> tuple[Jobs, ...]:
        """The kinds of work whose jobs only send transactions."""
        return self.sends, self.calls, self.informs
