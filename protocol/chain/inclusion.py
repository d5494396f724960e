"""How long an account's transactions take from their broadcast to their receipt, for those that have to be in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from math import ceil
from typing import Final

from protocol.tasks.task import INCLUSION_BLOCKS

KEPT: Final = 50
"""Receipts of which the 95th percentile counts: three slow ones of them count, two do not."""
SHARE: Final = 0.95
PROMPT: Final = 1.0
"""Seconds, at least: where nobody has looked for a receipt for longer, or for longer than a block, it says nothing."""


def percentile(values: Collection[float], share: float) -> float:
    """The least value that so many of all values do not exceed (the nearest rank). There is one at least."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


class Inclusion:
    """The last `KEPT` transactions of one account that this process has handed over. Any thread may note and ask."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[int, tuple[float, float]] = {}
        """By nonce: when it was handed over first, and when it was last looked for for nothing."""
        self._taken: deque[float] = deque(maxlen=KEPT)

    def begin(self, nonce: int) -> None:
        """A transaction is about to be handed over; with a higher fee it is the same one."""
        now = self._clock()
        self._waiting.setdefault(nonce, (now, now))

    def waits(self, nonce: int) -> None:
        """It was looked for, and is not mined yet."""
        waiting = self._waiting.get(nonce)
        if waiting is not None:
            self._waiting[nonce] = waiting[0], self._clock()

    def end(self, nonce: int, block_time: float) -> None:
        """Its receipt is here. It may have been for as long as nobody looked."""
        waiting, now = self._waiting.pop(nonce, None), self._clock()
        if waiting is not None and now - waiting[1] <= max(PROMPT, block_time):
            self._taken.append(now - waiting[0])

    def forget(self, nonce: int) -> None:
        """No node has taken it."""
        self._waiting.pop(nonce, None)

    def seconds(self, block_time: float) -> float:
        """What a transaction takes: two blocks, or the 95th percentile of the last ones where that is more. As long as
        there are fewer, the missing ones took two blocks.
        """
        least = INCLUSION_BLOCKS * block_time
        taken = list(self._taken)
        return max(least, percentile([*taken, *[least] * (KEPT - len(taken))], SHARE))
