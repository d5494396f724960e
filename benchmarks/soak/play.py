"""Plays several tasks at a time, each from its post to the release of its last seat. The clock is moved
whenever all parties are waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from benchmarks.soak.stage import Stage
from protocol.chain.client import Client
from protocol.chain.views import NOBODY, TaskStatus, TaskView

PATIENCE: Final = 900.0
"""Seconds within which some task must progress. The limit is long, because the machine may be busy."""
TOGETHER: Final = 300
"""When the clock is moved past the next deadline, it is also moved past the deadlines that follow within this
many seconds. A task's periods are longer than this.
"""
LOOK: Final = 0.3
WORK: Final[int | None] = None
"""Marks a task in which some party has work to do before the next deadline."""
ENDS: Final = {False: TaskStatus.SETTLED, True: TaskStatus.SLASHED}
"""The status with which a task must end, by whether a cheat trains it."""


class Play:
    """Plays the tasks of a soak. It calls `done` with a task's number and status once the task is over and
    its seats are released.

    `finished` are the tasks that earlier sessions have finished.
    """

    def __init__(self, stage: Stage, finished: Iterable[int], done: Callable[[int, str], None]) -> None:
        self._stage = stage
        self._client = stage.client
        self._finished = set(finished)
        self._done = done

    def run(self) -> None:
        """Play all tasks. Raises TimeoutError, StageError, and, for a task with a wrong end, RuntimeError."""
        stage, plan, market = self._stage, self._stage.plan, self._client.market
        moved = time.monotonic()
        last: tuple[tuple[TaskView, int | None], ...] = ()
        while len(self._finished) < plan.tasks:
            posted = market.tasks()
            under_way = [task for task in range(1, posted + 1) if task not in self._finished]
            # Post one at a time: a solver with a standing bid ignores other tasks until bidding is over.
            bidding = any(status is TaskStatus.BIDDING for status in market.statuses(under_way))
            if posted < plan.tasks and len(under_way) < plan.window and not bidding:
                under_way.append(stage.post())
            cheats = [task for task in under_way if plan.is_false(task)]
            stage.children.require_alive(may_end={f"cheat-{task}" for task in cheats} | self._past_cheats())
            with self._client.connection.view() as block:
                now, views = block.time, [market.task(task) for task in under_way]
                found = tuple(
                    (view, waits_until(self._client, view, plan.is_false(view.task))) for view in views
                )
                over = [view for view in views if view.status.is_over and self._is_released(view.task)]
            self._send_cheats(views)
            for view in over:
                self._finish(view)
            if not over:
                self._pass_time([until for _, until in found], now)
            if found != last:
                moved, last = time.monotonic(), found
            elif time.monotonic() - moved > PATIENCE:
                raise TimeoutError(f"expected a task to get further within {PATIENCE:.0f} s, got {found}")
            time.sleep(LOOK)

    def _past_cheats(self) -> set[str]:
        return {f"cheat-{task}" for task in self._finished}

    def _send_cheats(self, views: Iterable[TaskView]) -> None:
        """Start the cheat of the first false task that is not over. Start nothing while the cheat of a
        finished task is still running, because all cheats share one account.
        """
        false = [view for view in views if self._stage.plan.is_false(view.task) and not view.status.is_over]
        running = any(self._stage.is_running(name) for name in self._past_cheats())
        if false and not running:
            self._stage.send_cheat(false[0].task)

    def _finish(self, view: TaskView) -> None:
        false = self._stage.plan.is_false(view.task)
        if view.status is not ENDS[false]:
            raise RuntimeError(f"expected task {view.task} to be {ENDS[false].name}, got {view.status.name}")
        self._finished.add(view.task)
        self._done(view.task, view.status.name.lower())

    def _is_released(self, task: int) -> bool:
        audit = self._client.audit
        places = [*audit.seats(task), *audit.looks(task)]
        return all(place.is_empty or place.released for place in places)

    def _pass_time(self, waits: list[int | None], now: int) -> None:
        """Move the clock past the next deadline, unless a party has work to do before it."""
        due = [until for until in waits if until is not None]
        if not due or len(due) < len(waits) or min(due) < now:
            return
        self._stage.chain.skip(max(until for until in due if until <= min(due) + TOGETHER) + 1 - now)


def waits_until(client: Client, view: TaskView, false: bool) -> int | None:
    """The deadline before which nothing happens to a task, or WORK if some party has work to do."""
    if view.status is TaskStatus.BIDDING:
        return WORK if view.bidder == NOBODY else view.bids_until
    if view.status is not TaskStatus.SUBMITTED or false:
        return WORK
    audit = client.audit.audit(view.task)
    if audit.pending or not audit.drawn_at:
        return WORK
    late = [seat for seat in client.audit.seats(view.task) if not seat.attested]
    if late:
        return max(seat.until for seat in late) if all(seat.is_empty for seat in late) else WORK
    busy = audit.looking or not audit.audited or client.looks.open_accusations(view.task)
    return WORK if busy else view.challenge_until
