"""What all rooms of a running verifier share: the chain client, the settings, the conduct, the disk, the tasks held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.bundles import Limits
from protocol.chain.client import Client
from protocol.chain.views import TaskView
from protocol.runtime import logs
from protocol.runtime.database import Identity
from protocol.runtime.home import Home
from verifier.conduct import Conduct
from verifier.database import Database
from verifier.material import Material, Materials
from verifier.settings import VerifierSettings

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(frozen=True)
class Desk:
    """One verifier's collaborators."""

    client: Client
    settings: VerifierSettings
    conduct: Conduct
    database: Database
    materials: Materials
    log: FilteringBoundLogger

    @classmethod
    def at(cls, home: Home, client: Client, settings: VerifierSettings, conduct: Conduct) -> Desk:
        """The desk of this account on this chain, below the home folder. Raises DatabaseError."""
        genesis, market = client.connection.genesis, client.market.address
        name = f"{client.connection.chain_id}-{genesis[2:10]}-{client.address[2:10]}"
        folder = home.folder("verifier", name)
        database = Database(folder / "verifier.sqlite", Identity(genesis, market, client.address))
        limits = Limits(allowed=settings.bundles)
        materials = Materials(folder, home.bundles, database, conduct, limits)
        return cls(client, settings, conduct, database, materials, logs.get("verifier"))

    def material(self, view: TaskView) -> Material:
        """What is needed to replay a task. Raises BundleError, ChainError."""
        market = self.client.market
        return self.materials.get(view.task, market.terms(view.task), market.endpoint_of(view.solver))
