"""A solver's reports to its operator: alerts and deadlines of the tasks it has won."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.node.monitoring.alerts import Alerts
from protocol.node.monitoring.deadlines import Deadline
from protocol.node.party.followed import follow, training_due
from solver.context import Context


class Reports:
    """Raises alerts and collects deadlines. The argument `alerts` of its methods is None if the node is not
    monitored. Used by the loop's thread.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._due: dict[int, list[Deadline]] = {}

    def see(self, view: TaskView, alerts: Alerts | None) -> None:
        """Raise new alerts about a task, and note its training's deadline. Does nothing without `alerts`."""
        if alerts is None:
            return
        context, terms, market = self._context, self._context.terms(view.task), self._market
        follow(alerts, context.settings, market, view, terms, context.client.now())
        self._due[view.task] = training_due(market, view, terms)

    def due(self, taken: Iterable[int], clocks: Iterable[tuple[int, int]]) -> list[Deadline]:
        """The deadlines of the trainings of the tasks in `taken`, and the deadlines of moves. `clocks` has
        one pair for each move: the task, and the time by which the move is due.
        """
        self._due = {task: self._due[task] for task in taken if task in self._due}
        moves = [
            Deadline(self._market, task, "move", until, self._context.terms(task).clock)
            for task, until in clocks
        ]
        return [*chain.from_iterable(self._due.values()), *moves]

    def ended(self, view: TaskView, lost: Mapping[str, float], alerts: Alerts | None) -> None:
        """Report that a task is over for good. `lost` gives what the solver lost by the task, in tokens by
        kind; it is empty if nothing was lost.
        """
        context, task, status = self._context, view.task, view.status
        if alerts is not None:
            alerts.forget(self._market, task)
        if status is TaskStatus.SETTLED:
            context.metrics.earned.inc(view.price / TOKEN)
        for what, count in lost.items():
            context.metrics.lost.labels(what.removesuffix("_tokens")).inc(count)
        log = context.log.error if lost else context.log.info
        log("task over", task=task, outcome=status.name.lower(), **lost)

    @property
    def _market(self) -> str:
        return self._context.client.market.address
