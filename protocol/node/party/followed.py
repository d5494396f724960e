"""Alerts and deadlines of a followed task, from its state on the chain."""

from __future__ import annotations

import math
from typing import Final

from protocol.chain.views import TaskStatus, TaskView
from protocol.node.monitoring.alerts import Alerts, Seen
from protocol.node.monitoring.deadlines import Deadline
from protocol.node.party.settings import NodeSettings
from protocol.tasks.task import Terms

SILENT_SHARE = 3
"""A solver counts as silent after 1 / SILENT_SHARE of the training period without progress. By default, a
solver commits its progress after each quarter of the segments or more often. If it finishes in time, at most
about a quarter of the period lies between two commitments. A task with fewer than four segments has fewer
commitments, so its solver may be silent for longer, in proportion.
"""
QUARTERS: Final = 4
"""A solver commits its progress this many times by default, or more often, if the task has as many segments."""


def follow(
    alerts: Alerts | None, settings: NodeSettings, market: str, view: TaskView, terms: Terms, now: int
) -> None:
    """Raise the alerts due for a task at the chain's time `now`. Do nothing if `alerts` is None."""
    if alerts is None:
        return
    silent = math.inf
    if view.status is TaskStatus.TRAINING:
        minutes = settings.silent_minutes
        usual = terms.training_period / SILENT_SHARE * max(1, QUARTERS / terms.segments)
        silent = usual if minutes is None else 60 * minutes
    seen = Seen(view.status.name.lower(), view.size, view.open_games, now)
    alerts.see(market, view.task, seen, silent, now)


def training_due(market: str, view: TaskView, terms: Terms) -> list[Deadline]:
    """The end of a task's training period as a deadline; none if the task is not in training."""
    if view.status is not TaskStatus.TRAINING:
        return []
    return [Deadline(market, view.task, "train", view.train_until, terms.training_period)]
