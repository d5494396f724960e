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
        """The task that a user means by a number: the one that was posted from the home folder with it, even
        if its post is not on the chain now. If none was, the task that has the number now. Raises ChainError
        as in `read`, and AnotherTask if the number has become another task's. The new number then means the
        same task as the old one.

        If there is nothing new to say of that task, and the number has become that of another task that was
        posted from the home folder, it means this one.
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
        """The task that has a number now, if it was posted from the home folder with another number."""
        with suppress(Reverted):
            found = cls.read(client, number)
            if notes.number_noted(home, client, found.submitter, found.terms) is not None:
                return found
        return None

    @classmethod
    def _moves(cls, client: Client, home: Home, number: int, now: int | None) -> dict[int, int]:
        """The new number of a task whose old one is `number`. The new number may be noted as that of another
        task of the home folder, which then has another number too, and so on: all these, by their old
        numbers. Empty if one of these tasks is not found among the open ones. Raises ChainError.
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
        """The task's state. Raises AnotherTask if its number has become another task's, NotMinedAgain if no
        task has its number any more, and ChainError.
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
        """The number that the task has now. If the account has several open tasks with these terms, it is one
        that is not noted in the home folder, if there is one. None if no open task fits. Must be called
        inside a view.
        """
        fitting = [task for task in open_numbers(client)[0] if self._is(client, client.market.task(task))]
        unnoted = [task for task in fitting if not notes.note_of(home, client, task).is_file()]
        return next(reversed(unnoted or fitting), None)

    def _is(self, client: Client, view: TaskView) -> bool:
        return view.submitter == self.submitter and client.market.terms(view.task) == self.terms


def _viewing(client: Client) -> AbstractContextManager[object]:
    connection = client.connection
    return nullcontext() if connection.is_viewing else connection.view()
