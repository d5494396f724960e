"""What all modules of a running verifier share: the chain client, the settings, the strategy, the tasks in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.chain.client import Client
from protocol.chain.views import TaskView
from protocol.node import logs
from protocol.node.addresses import parsed
from protocol.node.home import Home
from protocol.node.party.data import data_folder, open_database
from protocol.tasks.bundles import Limits
from verifier.database import Database
from verifier.material import Material, Materials
from verifier.settings import VerifierSettings
from verifier.strategy import Strategy

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(frozen=True)
class Context:
    """One verifier's collaborators."""

    client: Client
    settings: VerifierSettings
    strategy: Strategy
    database: Database
    materials: Materials
    log: FilteringBoundLogger

    @classmethod
    def at(cls, home: Home, client: Client, settings: VerifierSettings, strategy: Strategy) -> Context:
        """The context of this account on this chain, below the home folder. Raises DatabaseError."""
        database = open_database(Database, home, client)
        limits = Limits(allowed=settings.bundles)
        materials = Materials(data_folder(home, "verifier", client), home.bundles, database, strategy, limits)
        return cls(client, settings, strategy, database, materials, logs.get("verifier"))

    def material(self, view: TaskView) -> Material:
        """What is needed to replay a task. Raises BundleError, ChainError."""
        market = self.client.market
        endpoint = parsed(market.endpoint_of(view.solver))
        return self.materials.get(view.task, market.terms(view.task), endpoint)
