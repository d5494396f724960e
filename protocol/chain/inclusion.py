"""Measures how long an account's transactions take from broadcast to receipt, so that urgent ones can be
planned.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from math import ceil
from typing import Final

from protocol.tasks.task import INCLUSION_BLOCKS

KEPT: Final = 50
"""Number of receipts over which the 95th percentile is taken. Three slow receipts affect the percentile, two
do not.
"""
SHARE: Final = 0.95
PROMPT: Final = 1.0
"""A transaction's time counts only if at most this many seconds lie between the check that finds its receipt
and the check before it. If a block takes longer than this, the limit is one block time.
"""


def percentile(values: Collection[float], share: float) -> float:
    """The smallest of `values` for which at least this share of all values are less than or equal to it
    (nearest rank). `values` must not be empty.
    """
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


class Inclusion:
    """The times taken by the last `KEPT` transactions that this process sent from one account. Callable from
    any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[int, tuple[float, float]] = {}
        """For each nonce, two times: when the transaction was first sent, and when its receipt was last
        looked for in vain.
        """
        self._taken: deque[float] = deque(maxlen=KEPT)

    def begin(self, nonce: int) -> None:
        """Record that a transaction is about to be sent. A replacement with a higher fee counts as the same
        transaction.
        """
        now = self._clock()
        self._waiting.setdefault(nonce, (now, now))

    def waits(self, nonce: int) -> None:
        """Record that the transaction's receipt was looked for and is not there yet."""
        waiting = self._waiting.get(nonce)
        if waiting is not None:
            self._waiting[nonce] = waiting[0], self._clock()

    def end(self, nonce: int, block_time: float) -> None:
        """Record that the transaction's receipt has arrived. Because the receipt may have existed since the
        previous check for it, the time is recorded only if that check was recent enough (`PROMPT`).
        """
        waiting, now = self._waiting.pop(nonce, None), self._clock()
        if waiting is not None and now - waiting[1] <= max(PROMPT, block_time):
            self._taken.append(now - waiting[0])

    def forget(self, nonce: int) -> None:
        """Forget a transaction that no node accepted."""
        self._waiting.pop(nonce, None)

    def seconds(self, block_time: float) -> float:
        """Seconds to expect for a transaction: the 95th percentile of the last `KEPT` times, but at least two
        block times. As long as fewer than `KEPT` times are known, each missing one counts as two block times.
        """
        least = INCLUSION_BLOCKS * block_time
        taken = list(self._taken)
        return max(least, percentile([*taken, *[least] * (KEPT - len(taken))], SHARE))
