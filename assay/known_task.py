"""Finds out which task a user means by a number. A re-organisation of the chain may have given the number to
another task.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from assay import notes
from assay.errors import AnotherTask, NotMinedAgain
from assay.status import open_numbers
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.views import TaskView
from protocol.node.home import Home
from protocol.tasks.task import Terms


@dataclass(frozen=True)
class KnownTask:
    """The number, the submitter and the terms of a task, as recorded when the task was posted, or as read
    from the chain when the number was first looked up.
    """

    number: int
    submitter: str
    terms: Terms

    @classmethod
    def read(cls, client: Client, number: int) -> Self:
        """The task that has this number now. Raises ChainError; the error is Reverted (UnknownTask) if there
        is no such task.
        """
        with _viewing(client):
            return cls(number, client.market.task(number).submitter, client.market.terms(number))

    @classmethod
    def meant(cls, client: Client, home: Home, number: int) -> Self:
        """The task that a user means by a number. This is the task that was posted from the home folder with
        this number, even if its post is not on the chain now. If the home folder has noted no such task, it
        is the task that has the number now.

        If the noted task does not have the number now, raises AnotherTask as in `view`. Before that, the new
        numbers (`_moves`) are noted if they were found, so that from then on each of them means the moved
        task. There is one exception. The error would say nothing new if the noted task's new number was not
        found or is already noted. If, in this case, the number now belongs to another task that the home
        folder has noted, that other task is returned instead. Raises ChainError as in `read`.
        """
        noted = notes.posted(home, client, number)
        if noted is None:
            return cls.read(client, number)
        known = cls(number, *noted)
        try:
            known.view(client, home)
        except NotMinedAgain:
            pass  # it may be mined again
        except AnotherTask as error:
            told = error.number is None or notes.posted(home, client, error.number) == noted
            if told and (other := cls._own(client, home, number)) is not None:
                return other
            notes.renumber(home, client, cls._moves(client, home, number, error.number))
            raise
        return known

    @classmethod
    def _own(cls, client: Client, home: Home, number: int) -> Self | None:
        """The task that has the number `number` now. None if there is no such task, or if the home folder has
        not noted that task under any number.
        """
        with suppress(Reverted):
            found = cls.read(client, number)
            if notes.number_noted(home, client, found.submitter, found.terms) is not None:
                return found
        return None

    @classmethod
    def _moves(cls, client: Client, home: Home, number: int, now: int | None) -> dict[int, int]:
        """The new numbers of tasks of the home folder, by their old numbers. The first is `now`, the new
        number of the task that was noted under `number`; it is None if it was not found. If another task was
        noted under `now`, that task has a new number too, and so on. Empty if the new number of one of these
        tasks was not found. Raises ChainError.
        """
        moves: dict[int, int] = {}
        while number not in moves:
            if now is None:
                return {}
            moves[number] = now
            noted = notes.posted(home, client, now)
            if noted is None:
                break
            number = now
            try:
                cls(number, *noted).view(client, home)
                break
            except AnotherTask as error:
                now = error.number
            except NotMinedAgain:
                now = None
        return moves

    def file(self, client: Client, home: Home) -> Path | None:
        """The file that the task came from (`notes.recall`)."""
        return notes.recall(home, client, self.number, self.submitter, self.terms)

    def view(self, client: Client, home: Home) -> TaskView:
        """The task's state. Raises AnotherTask if another task has its number now, or if no task has this
        number and the task was found under another number. Raises NotMinedAgain if no task has this number
        and the task was not found. Raises ChainError.
        """
        with _viewing(client):
            view = client.market.task_if_posted(self.number)
            if view is not None and self._is(client, view):
                return view
            number = self._number_now(client, home)
        if view is None and number is None:
            raise NotMinedAgain(
                f"task {self.number}",
                expected="it on the chain",
                got="no such task since a re-organisation",
                remedy="its post may be mined again",
            )
        raise AnotherTask(self.number, self.submitter, None if view is None else view.submitter, number)

    def _number_now(self, client: Client, home: Home) -> int | None:
        """Find the number that the task has now: that of the newest open task with this submitter and these
        terms. If any of these open tasks have numbers without a note in the home folder, the newest of those
        is taken. None if there is no such task. Must be called inside a view.
        """
        fitting = [task for task in open_numbers(client)[0] if self._is(client, client.market.task(task))]
        unnoted = [task for task in fitting if not notes.note_of(home, client, task).is_file()]
        return next(reversed(unnoted or fitting), None)

    def _is(self, client: Client, view: TaskView) -> bool:
        return view.submitter == self.submitter and client.market.terms(view.task) == self.terms


def _viewing(client: Client) -> AbstractContextManager[object]:
    connection = client.connection
    return nullcontext() if connection.is_viewing else connection.view()
