"""How long an account's transactions take from broadcast to receipt, for those that must be in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from math import ceil
from typing import Final

from protocol.tasks.task import INCLUSION_BLOCKS

KEPT: Final = 50
"""Receipts over which the 95th percentile is taken: three slow ones of them count, two do not."""
SHARE: Final = 0.95
PROMPT: Final = 1.0
"""Least interval in seconds: if nobody has looked for a receipt for longer, or for longer than a block, it says
nothing.
"""


def percentile(values: Collection[float], share: float) -> float:
    """The least value that this share of all values does not exceed (the nearest rank). There is at least one value."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


class Inclusion:
    """The last `KEPT` transactions of one account that this process has sent. Callable from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[int, tuple[float, float]] = {}
        """By nonce: when it was first sent, and when it was last looked for without success."""
        self._taken: deque[float] = deque(maxlen=KEPT)

    def begin(self, nonce: int) -> None:
        """A transaction is about to be sent; with a higher fee it counts as the same one."""
        now = self._clock()
        self._waiting.setdefault(nonce, (now, now))

    def waits(self, nonce: int) -> None:
        """It was looked for, and is not mined yet."""
        waiting = self._waiting.get(nonce)
        if waiting is not None:
            self._waiting[nonce] = waiting[0], self._clock()

    def end(self, nonce: int, block_time: float) -> None:
        """Its receipt has arrived; it may have existed for as long as nobody looked."""
        waiting, now = self._waiting.pop(nonce, None), self._clock()
        if waiting is not None and now - waiting[1] <= max(PROMPT, block_time):
            self._taken.append(now - waiting[0])

    def forget(self, nonce: int) -> None:
        """No node accepted it."""
        self._waiting.pop(nonce, None)

    def seconds(self, block_time: float) -> float:
        """Seconds that a transaction takes: two blocks, or the 95th percentile of the last ones if that is more.
        Missing samples count as two blocks.
        """
        least = INCLUSION_BLOCKS * block_time
        taken = list(self._taken)
        return max(least, percentile([*taken, *[least] * (KEPT - len(taken))], SHARE))
