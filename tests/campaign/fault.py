"""What a fault is: a thing that befalls the party under test at one stage, lasts for a while, and goes again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from math import inf
from time import monotonic

from tests.campaign.world import Hooks, World


class Needs(StrEnum):
    """What a party has to have or to do at a stage for a fault to touch it."""

    PROCESS = "a process"
    DATABASE = "a database"
    JOURNAL = "a journal of transactions"
    WRITES = "writes to its disk"
    CHAIN = "questions to the chain"
    SENDS = "transactions to send"
    BEACON = "questions to the beacon"
    PEERS = "questions to other parties"


class Fault(ABC):
    """One fault for one case. `name` is the table's. It lasts at least `least` seconds and at most `most`: in between
    until the next stage, or with `ends_when_felt`, for then the party does nothing meanwhile, until it is felt.
    """

    name: str
    needs: Needs
    operator = "nothing"
    """What the table says that an operator must do."""
    least = 0.0
    most = 15.0
    ends_when_felt = False

    def prepare(self, world: World) -> None:
        """Before the party is started: what it runs on."""
        return

    def before(self, world: World) -> None:
        """At each stage before the fault's own."""
        return

    @abstractmethod
    def apply(self, world: World) -> None:
        """Begin. The chain stands still; it may be moved on."""

    def lift(self, world: World) -> None:
        """End."""
        return

    @abstractmethod
    def felt(self, world: World) -> bool:
        """Whether the party was touched: otherwise the case says nothing."""

    @property
    def remedy(self) -> str:
        """What an operator had to do for the party to work again, by its own words; empty where nothing was."""
        return ""


class Strike:
    """A fault upon a world: `begin` at its stage, `stage` at each that follows, `end` when the scene is over."""

    def __init__(self, fault: Fault, world: World) -> None:
        self._fault = fault
        self._world = world
        self._since: float | None = None
        self.began = False

    def begin(self) -> None:
        """Its stage is reached."""
        self.began = True
        self._fault.apply(self._world)
        self._since = monotonic()
        self._world.hooks = Hooks(self._tick, self._allowance)
        self._tick()

    def stage(self) -> None:
        """The next stage is reached."""
        if self._since is not None and not self._fault.ends_when_felt and self._fault.most < inf:
            self.end()

    def end(self) -> None:
        """It ends now, if it has lasted."""
        if self._since is not None:
            left = self._since + self._fault.least - monotonic()
            if left > 0:
                self._world.wait(left)
            self._lift()

    def _allowance(self) -> float:
        """Nobody is impatient while it lasts, but where it stays."""
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
