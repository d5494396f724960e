"""What the main loop of a node records about itself: whether it turns, and how old the chain's answers are.

Pure: times are seconds of a monotonic clock that the caller reads, except for the chain's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Final

PERIODS: Final = 10
"""Seconds that a loop may take for one turn of its work."""
LEAST_SECONDS: Final = 150.0
"""Seconds that a turn may take however short the period is: a question to a hanging chain is given up after five
times 20 s (protocol/chain/connection.py).
"""
START_SECONDS: Final = 900.0
"""Seconds until the first turn: a start waits for the receipts of a deposit and of a registration."""
STALE_SECONDS: Final = 120.0
"""Seconds without an answer of the chain; three periods if that is more."""


@dataclass
class Pulse:
    """Written by the loop, read by other threads: each field is set at once."""

    began: float = field(default_factory=monotonic)
    turned: float | None = None
    """When the last turn ended."""
    period: float = 0.0
    """Seconds that the loop rests between two turns."""
    answered: float | None = None
    """When the last turn ended in which the chain answered everything."""
    block: int = 0
    block_time: int = 0
    """Time of the newest block that was seen, seconds since 1970; 0 before the first."""

    def turn(self, now: float, period: float) -> None:
        """The loop has turned, and rests for `period`."""
        self.period, self.turned = period, now

    def answer(self, now: float, block: int, block_time: int) -> None:
        """The chain has answered a whole turn."""
        self.block, self.block_time, self.answered = block, block_time, now

    def loop_age(self, now: float) -> float:
        """Seconds since the last turn, or since the start."""
        return now - (self.began if self.turned is None else self.turned)

    @property
    def loop_limit(self) -> float:
        """Seconds after which a loop that has not turned counts as stalled."""
        return START_SECONDS if self.turned is None else max(LEAST_SECONDS, PERIODS * self.period)

    def is_alive(self, now: float) -> bool:
        """Whether the loop turns."""
        return self.loop_age(now) <= self.loop_limit

    def rpc_age(self, now: float) -> float:
        """Seconds since the chain last answered a whole turn, or since the start."""
        return now - (self.began if self.answered is None else self.answered)

    @property
    def rpc_limit(self) -> float:
        """Seconds after which what is known of the chain counts as stale."""
        return max(STALE_SECONDS, 3 * self.period)

    def chain_time(self, now: float) -> float:
        """The chain's clock, estimated from its newest block; 0 before the first was seen."""
        return self.block_time + (now - self.answered) if self.answered is not None else 0.0
