"""What a node's main loop records about itself. This shows whether the loop is still running, and how old the
chain's answers are. A turn is one pass of the loop.

Times are seconds of a monotonic clock, except for the chain's time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Final

PERIODS: Final = 10
"""Maximum duration of a turn of the loop, as a multiple of `Pulse.period`."""
LEAST_SECONDS: Final = 150.0
"""Seconds that a turn may take even if the period is short. If a node of the chain hangs, the loop gives up
on a question only after five attempts of 20 s each (protocol/chain/connection.py).
"""
START_SECONDS: Final = 900.0
"""Seconds that the first turn may take: a start waits for the receipts of a deposit and of a registration."""
STALE_SECONDS: Final = 120.0
"""The chain's data are stale after this many seconds without an answer, or after three times `Pulse.period`
if that is longer.
"""


@dataclass
class Pulse:
    """When the last turn of a node's loop ended, and when the chain last answered the loop. The loop writes
    the fields, each by a single assignment; other threads read them.
    """

    began: float = field(default_factory=monotonic)
    turned: float | None = None
    """When the last turn ended."""
    period: float = 0.0
    """Seconds that the loop rests between two turns."""
    answered: float | None = None
    """End of the last turn in which the chain answered all questions."""
    block: int = 0
    block_time: int = 0
    """Time of the newest block that was seen, seconds since 1970; 0 before the first."""

    def turn(self, now: float, period: float) -> None:
        """Record that a turn of the loop has ended at `now`, and that the loop rests for `period` seconds."""
        self.period, self.turned = period, now

    def answer(self, now: float, block: int, block_time: int) -> None:
        """Record that the chain has answered all questions of a turn."""
        self.block, self.block_time, self.answered = block, block_time, now

    def loop_age(self, now: float) -> float:
        """Seconds since the last turn, or since the loop's start if there was no turn yet."""
        return now - (self.began if self.turned is None else self.turned)

    @property
    def loop_limit(self) -> float:
        """Seconds after which a loop that has not turned counts as stalled."""
        return START_SECONDS if self.turned is None else max(LEAST_SECONDS, PERIODS * self.period)

    def is_alive(self, now: float) -> bool:
        """Whether `loop_age` is at most `loop_limit`."""
        return self.loop_age(now) <= self.loop_limit

    def rpc_age(self, now: float) -> float:
        """Seconds since the last turn in which the chain answered all questions, or since the start."""
        return now - (self.began if self.answered is None else self.answered)

    @property
    def rpc_limit(self) -> float:
        """Seconds after which the chain's data count as stale."""
        return max(STALE_SECONDS, 3 * self.period)

    def chain_time(self, now: float) -> float:
        """The chain's time, estimated from its newest block; 0 before the first block was seen."""
        return self.block_time + (now - self.answered) if self.answered is not None else 0.0
