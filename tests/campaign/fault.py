"""The base of all faults: a fault strikes the party under test at one stage, lasts for a while, and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from math import inf
from time import monotonic

from tests.campaign.world import Hooks, World


class Needs(StrEnum):
    """Something that a party must have or do at a stage so that a fault can affect it."""

    PROCESS = "a process"
    DATABASE = "a database"
    JOURNAL = "a journal of transactions"
    WRITES = "writes to its disk"
    CHAIN = "questions to the chain"
    SENDS = "transactions to send"
    BEACON = "questions to the beacon"
    PEERS = "questions to other parties"


class Fault(ABC):
    """One fault for one case. `name` is its name in the table. It lasts between `least` and `most` seconds:
    until the next stage or, for faults that block the party (`ends_when_felt`), until the party has felt it.
    """

    name: str
    needs: Needs
    operator = "nothing"
    """The action that an operator must take, in the words of the table."""
    least = 0.0
    most = 15.0
    ends_when_felt = False

    def prepare(self, world: World) -> None:
        """Prepare what the party runs on, before it starts."""
        return

    def before(self, world: World) -> None:
        """Prepare at each stage that comes before the fault's own stage."""
        return

    @abstractmethod
    def apply(self, world: World) -> None:
        """Begin the fault. The chain stands still, but the fault may move it on."""

    def lift(self, world: World) -> None:
        """End the fault."""
        return

    @abstractmethod
    def felt(self, world: World) -> bool:
        """Whether the party was affected; otherwise the case proves nothing."""

    @property
    def remedy(self) -> str:
        """The action that the party asked its operator for before it could work again; empty if none."""
        return ""


class Strike:
    """Applies a fault to a world: call `begin` at its stage, `stage` at later ones, `end` when the scene is
    over.
    """

    def __init__(self, fault: Fault, world: World) -> None:
        self._fault = fault
        self._world = world
        self._since: float | None = None
        self.began = False

    def begin(self) -> None:
        """Apply the fault, because its stage is reached."""
        self.began = True
        self._fault.apply(self._world)
        self._since = monotonic()
        self._world.hooks = Hooks(self._tick, self._allowance)
        self._tick()

    def stage(self) -> None:
        """Note that a later stage is reached; ends the fault, if it lasts only until then."""
        if self._since is not None and not self._fault.ends_when_felt and self._fault.most < inf:
            self.end()

    def end(self) -> None:
        """End the fault as soon as it has lasted its minimum time."""
        if self._since is not None:
            left = self._since + self._fault.least - monotonic()
            if left > 0:
                self._world.wait(left)
            self._lift()

    def _allowance(self) -> float:
        """Extra seconds of patience: as long as the fault may last; none for a fault that stays."""
        return 0.0 if self._fault.most == inf else self._fault.most

    def _tick(self) -> None:
        if self._since is None:
            return
        lasted = monotonic() - self._since
        felt = self._fault.ends_when_felt and lasted >= self._fault.least and self._fault.felt(self._world)
        if felt or lasted >= self._fault.most:
            self._lift()

    def _lift(self) -> None:
        if self._since is not None:
            self._since = None
            self._fault.lift(self._world)
