"""Solvers that several studies play: their price says nothing about what they do. Not a strategy of `sim list`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sim.agents.solvers import Lazy, Won, Work
from sim.parameters import MarketParameters


@dataclass(frozen=True)
class Disguised(Lazy):
    """Bids as an honest solver and, with the chance `rate`, invents the share `share` of its segments.

    Markets with it and with honest solvers have the same winners and prices under the same seed: the difference of
    their profits is what cheating earns.
    """

    name: ClassVar[str] = "disguised"
    rate: float = 1.0

    def expected_effort(self, parameters: MarketParameters) -> float:
        """The whole cost: the bid does not reveal what cheating saves."""
        del parameters
        return 1.0

    def work(self, view: Won) -> Work:
        """One coin for each task."""
        cheats = view.uniform < self.rate
        false = self.false(view.parameters)
        work = self._work(view, 0)
        return work._replace(
            false=np.where(cheats, false, work.false).astype(np.int32),
            effort=np.where(cheats, 1 - false / view.parameters.segments, work.effort),
        )
