"""Reads the state of all open tasks as of a block, and offers the jobs that are due in them. In this module,
a look is such a reading, of one task or of all. It is not a look in the sense of audit.md section 6.

The functions that read one task and list its due jobs are passed in. This module keeps the order of the
tasks, the pauses of tasks at which a look failed, and the task at which a look ended early.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from protocol.chain.blocks import Block
from protocol.chain.connection import BATCH
from protocol.chain.errors import RpcRefused, RpcUnavailable
from protocol.node.party.exits import Observation
from protocol.node.stopping import Stop
from verifier.context import Context
from verifier.deadlines import concerns
from verifier.jobs import Rests
from verifier.offers import Offer
from verifier.open_tasks import OpenTasks

Look = Callable[[int, Block], Observation | None]
"""Reads a task's state as of a block; None if the task is over for good."""
Offers = Callable[[Observation], Iterable[Offer]]
"""The jobs that are due in a task."""


class Observer:
    """Reads the open tasks of one deployment, and offers their jobs. Used by the loop's thread."""

    def __init__(
        self,
        context: Context,
        tasks: OpenTasks,
        stop: Stop,
        look: Look,
        offers: Offers,
        after_look: Callable[[], None],
    ) -> None:
        """`after_look` is called after each look at one task, unless the look failed."""
        self._context = context
        self._tasks = tasks
        self._stop = stop
        self._look, self._offers, self._after_look = look, offers, after_look
        self._rests = Rests(longest=30)
        self._ours: set[int] = set()
        """Open tasks in which our accounts had something at the last look (`concerns`)."""
        self._next = 0
        """The task at which the last look ended because the node no longer had the block's state; 0 if that
        look saw all tasks.
        """

    @property
    def ended_early(self) -> bool:
        """Whether the last look ended because the chain's node no longer had the block's state."""
        return self._next != 0

    def look_at_all(self, block: Block) -> list[Observation]:
        """Look at all open tasks that do not rest, and offer the jobs that are due in them. Returns what was
        seen; nothing after a request to stop.

        Anyone may post tasks. So our own tasks come first, and their jobs are offered before strangers' tasks
        are looked at. The look ends early if the node no longer has the block's state. The next look then
        begins where this one ended. Raises RpcUnavailable.
        """
        awake = [task for task in self._tasks.numbers() if not self._rests.resting(task)]
        turns = sorted(awake, key=lambda task: (task < self._next, task))
        own = [task for task in turns if task in self._ours]
        observed: list[Observation] = []
        ended = self._look_at(own, block, observed)
        if ended is None:
            ended = self._look_at([task for task in turns if task not in self._ours], block, observed)
        # A task at which two looks in a row have ended lets the others go first.
        self._next = 0 if ended is None else ended + (ended == self._next)
        return observed

    def forget(self, task: int) -> None:
        """Drop what is kept about a task that is over."""
        self._ours.discard(task)
        self._rests.forget(task)

    def _look_at(self, tasks: Sequence[int], block: Block, observed: list[Observation]) -> int | None:
        """Look at tasks, append what is seen to `observed`, and offer the jobs that are due, the earliest
        deadline first. Returns the task at which the look ended early, or None. Raises RpcUnavailable.
        """
        offers: list[Offer] = []
        ended = None
        for number, task in enumerate(tasks):
            if number % BATCH == 0:
                asked = tasks[number : number + BATCH]
                self._context.client.market.ask_ahead("taskOf", *([one] for one in asked))
            started = time.monotonic()
            try:
                seen = self._look(task, block)
                if seen is not None and not self._stop.asked:
                    observed.append(seen)
                    self._note_ours(seen)
                    for offer in self._offers(seen):  # those before an error are kept
                        offers.append(offer)
            except RpcUnavailable:
                raise
            except Exception as error:
                if isinstance(error, RpcRefused) and self._is_gone(block):
                    ended = task
                    break
                # Strangers write a task's data: an error in it must not end the look at other tasks.
                self._rests.failed(task, time.monotonic() - started)
                self._context.failed(task, "look", error)
                continue
            self._rests.succeeded(task)
            self._after_look()
        for offer in sorted(offers, key=lambda offer: offer.order):
            offer.work.offer(offer.job)
        return ended

    def _note_ours(self, seen: Observation) -> None:
        """Record whether the task is one of ours."""
        if concerns(self._context, seen):
            self._ours.add(seen.view.task)
        else:
            self._ours.discard(seen.view.task)

    def _is_gone(self, block: Block) -> bool:
        """Whether the chain's node no longer has the state of a block. Raises RpcUnavailable."""
        client = self._context.client
        try:
            client.connection.code(client.market.address, block.hash)
        except RpcRefused:
            return True
        return False
