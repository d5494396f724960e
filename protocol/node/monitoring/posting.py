"""Posts alerts to the webhook one after the other. After a failure it pauses; the pause doubles with each
further failure in a row, up to five minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter

from protocol.node.monitoring.alerts import Alerts
from protocol.node.monitoring.webhook import NotTaken, Webhook

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FIRST_REST: Final = 1.0
LONGEST_REST: Final = 300.0
GIVEN_UP: Final = 3 * 86_400
"""Seconds after which an undelivered alert is dropped."""


class Poster:
    """Posts alerts. Not thread-safe. `rest` is the pause in seconds after a first failure."""

    def __init__(
        self,
        alerts: Alerts,
        webhook: Webhook,
        log: FilteringBoundLogger,
        registry: CollectorRegistry,
        rest: float = FIRST_REST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alerts = alerts
        self._webhook = webhook
        self._log = log
        self._rest = rest
        self._clock = clock
        self._failures = 0
        self._after = 0.0
        self._posts = Counter(
            "assay_node_webhook_posts", "Documents posted to the webhook", ["outcome"], registry=registry
        )
        for outcome in ("taken", "failed"):
            self._posts.labels(outcome)

    def post(self) -> bool:
        """Post one alert if any waits and there is no pause. Returns whether to try the next one at once."""
        self._alerts.count_waiting(int(time.time()) - GIVEN_UP)
        if self._clock() < self._after:
            return False
        found = self._alerts.next()
        if found is None:
            return False
        waiting, _ = found
        try:
            self._webhook.post(waiting.document)
        except NotTaken as error:
            self._alerts.tried(*found)
            self._posts.labels("failed").inc()
            rest = min(LONGEST_REST, self._rest * 2 ** min(self._failures, 30))
            self._failures += 1
            self._after = self._clock() + rest
            self._log.warning(
                "webhook failed",
                webhook=str(self._webhook),
                error=str(error),
                tries=waiting.tries + 1,
                rest=rest,
            )
            return False
        self._alerts.posted(*found)
        self._posts.labels("taken").inc()
        self._failures, self._after = 0, 0.0
        return True
