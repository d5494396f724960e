"""Chooses the tasks that a verifier looks at, among all that were ever posted.

Every task is looked at until it is over for good and this process's accounts have nothing left in it. Then
its number is noted, and the task costs nothing any more. A task that was over before the first look usually
does not concern these accounts. Such tasks are checked in groups, one group in each look, so that a start
does not wait for the whole history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from typing import Final

from protocol.chain.client import Client
from protocol.chain.views import TaskStatus
from verifier.database import Database

PAST_A_LOOK: Final = 100
"""Limit on the past tasks handled in one look. They take the time of a few requests, during which open
tasks wait.
"""


class OpenTasks:
    """The tasks to look at. They come from the `chosen` tasks or, if none are chosen, from all tasks.
    `accounts` are the accounts of this process. Used by the loop's thread, inside a `Connection.view`.
    """

    def __init__(
        self, client: Client, database: Database, chosen: Container[int], accounts: Container[str]
    ) -> None:
        self._client = client
        self._database = database
        self._chosen = chosen
        self._accounts = accounts
        self._newest = 0
        self._open: set[int] = set()
        self._past: deque[int] = deque()
        """Tasks that were already over when they were found. It has not been checked yet whether the accounts
        of this process have anything in them.
        """

    def __len__(self) -> int:
        return len(self._open) + len(self._past)

    def find(self) -> None:
        """Find tasks posted since the last call. Raises ChainError."""
        newest = self._client.market.tasks()
        if newest < self._newest:  # a re-organisation removed the last tasks
            self._open = {task for task in self._open if task <= newest}
            self._past = deque(task for task in self._past if task <= newest)
        posted = [
            task
            for task in range(self._newest + 1, newest + 1)
            if (not self._chosen or task in self._chosen) and not self._database.is_finished(task)
        ]
        for task, status in zip(posted, self._client.market.statuses(posted), strict=True):
            if status.is_over and not self._database.knows(task):
                self._past.append(task)
            else:
                self._open.add(task)
        self._newest = newest

    def numbers(self) -> list[int]:
        """The numbers of the tasks to look at, ascending."""
        return sorted(self._open)

    def close(self, task: int) -> None:
        """Stop looking at a finished task."""
        self._open.discard(task)

    def finish_past(self) -> int:
        """Handle some past tasks. A task that is not over for good yet waits for a later look. A task that is
        over for good is recorded as finished if the accounts of this process have nothing in it; otherwise it
        is looked at from now on. Returns how many tasks were recorded as finished. Raises ChainError.
        """
        if not self._past:
            return 0
        market, number = self._client.market, min(len(self._past), PAST_A_LOOK)
        tasks = [self._past.popleft() for _ in range(number)]
        try:
            final = market.statuses(tasks, self._client.connection.final_block())
            drawn = self._drawn([task for task, status in zip(tasks, final, strict=True) if status.is_over])
        except BaseException:
            self._past.extendleft(reversed(tasks))
            raise
        self._past += [task for task, status in zip(tasks, final, strict=True) if not status.is_over]
        finished = [task for task in tasks if drawn.get(task) is False]
        self._database.finish(*finished)
        self._open |= {task for task in tasks if drawn.get(task)}
        return len(finished)

    def _drawn(self, tasks: Sequence[int]) -> dict[int, bool]:
        """For each past task, whether one of our accounts has a seat or look in it (audit.md section 6), may
        be in its jury, or has a bond in its claim.
        """
        client = self._client
        found = dict.fromkeys(tasks, False)
        submitted = [
            task
            for task, status in zip(tasks, client.market.statuses(tasks), strict=True)
            if status is not TaskStatus.REFUNDED
        ]
        client.audit.ahead(submitted)
        client.juries.ahead(submitted)
        for task in submitted:
            audit, claim = client.audit.audit(task), client.juries.claim_of(task)
            places = [*client.audit.seats(task), *(client.audit.looks(task) if audit.looks else ())]
            found[task] = (
                audit.claimant != 0
                or (claim is not None and claim.account in self._accounts)
                or any(place.account in self._accounts for place in places)
            )
        return found
