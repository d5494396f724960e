"""Alerts and deadlines of a followed task, from what the chain shows."""

from __future__ import annotations

import math

from protocol.chain.views import TaskStatus, TaskView
from protocol.node.monitoring.alerts import Alerts, Seen
from protocol.node.monitoring.deadlines import Deadline
from protocol.node.party.settings import NodeSettings
from protocol.tasks.task import Terms

SILENT_SHARE = 3
"""Share of its time after which a solver counts as silent: it commits its progress at least four times, so a third
without progress is silence.
"""


def follow(
    alerts: Alerts | None, settings: NodeSettings, market: str, view: TaskView, terms: Terms, now: int
) -> None:
    """Raise new alerts of a task at the chain's time `now`."""
    if alerts is None:
        return
    silent = math.inf
    if view.status is TaskStatus.TRAINING:
        minutes = settings.silent_minutes
        silent = terms.training_period / SILENT_SHARE if minutes is None else 60 * minutes
    seen = Seen(view.status.name.lower(), view.size, view.open_games, now)
    alerts.see(market, view.task, seen, silent, now)


def training_due(market: str, view: TaskView, terms: Terms) -> list[Deadline]:
    """The end of a task's training period, while it is trained."""
    if view.status is not TaskStatus.TRAINING:
        return []
    return [Deadline(market, view.task, "train", view.train_until, terms.training_period)]
