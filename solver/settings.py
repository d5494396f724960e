"""Settings of `solver run`: flags over ASSAY_* over the [solver] table of config.toml over these defaults.

Amounts are whole tokens; they become token units where they meet the chain. Importing this loads pydantic, so the
command line does it only when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from protocol.chain.parameters import TOKEN
from protocol.node.party.settings import NodeSettings
from protocol.tasks.task import Terms
from solver.bidding import Figures

Tokens = Annotated[Decimal, Field(ge=0, le=10**15)]


class SolverSettings(NodeSettings):
    """What an operator may choose. `url` is the public address of the HTTP service, where it is not its own."""

    account: str = "dev:1"
    stake: Tokens = Decimal(1000)
    """Tokens that are brought into the vault for stakes."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8701
    url: str | None = None
    progress_every: Annotated[int, Field(ge=0)] = 0
    """Segments between two progress transactions; 0: a quarter of the task's."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that train a task together, if it has micro-batches to share: at most one for each of them."""
    cost_per_hour: Tokens = Decimal(1)
    fixed_cost: Tokens = Decimal("0.1")
    """Gas and trouble of one task."""
    margin: Annotated[float, Field(ge=0, le=100)] = 0.2
    opening: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the budget that a first bid asks for."""

    @property
    def stake_units(self) -> int:
        """The stake in token units."""
        return int(self.stake * TOKEN)

    def figures(self, free: int, disk: int, block_seconds: float, taken: Sequence[Terms]) -> Figures:
        """The bidder's figures: `free` in token units, `disk` in bytes, `taken` the tasks that it has already."""
        return Figures(
            free,
            self.speed,
            float(self.cost_per_hour * TOKEN / 3600),
            int(self.fixed_cost * TOKEN),
            self.margin,
            self.opening,
            disk,
            block_seconds,
            tuple(taken),
        )

    def segments_between(self, terms: Terms) -> int:
        """Segments between two progress transactions of a task."""
        return self.progress_every or max(1, terms.segments // 4)
