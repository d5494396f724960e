"""A cheater shared by several studies, whose bids do not reveal that it cheats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sim.agents.solvers import Lazy, Won, Work
from sim.parameters import MarketParameters


@dataclass(frozen=True)
class Disguised(Lazy):
    """Bids like an honest solver. In each task, it cheats with chance `rate`: it then invents some of its
    segments, whose share of all segments is `share`.

    With the same seed, a market with this solver and a market with honest solvers have the same winners and
    prices. So the difference of the profits is the gain of cheating.
    """

    name: ClassVar[str] = "disguised"
    rate: float = 1.0

    def expected_effort(self, parameters: MarketParameters) -> float:
        """The whole cost, so that the bid does not reveal how much work the solver saves."""
        del parameters
        return 1.0

    def work(self, view: Won) -> Work:
        """Decide at random for each task whether to cheat."""
        cheats = view.uniform < self.rate
        false = self.false(view.parameters)
        work = self._work(view, 0)
        return work._replace(
            false=np.where(cheats, false, work.false).astype(np.int32),
            effort=np.where(cheats, 1 - false / view.parameters.segments, work.effort),
        )
