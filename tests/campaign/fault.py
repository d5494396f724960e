"""What a fault is: a thing that befalls the party under test at one stage, lasts for a while, and goes again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
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
    """One kind of fault, for one case. `name` is the table's. It lasts at least `least` seconds, and until the next
    stage but no longer than `most`.
    """

    name: str
    needs: Needs
    least = 0.0
    most = 15.0

    def prepare(self, world: World) -> None:
        """Before the party is started: what it runs on."""

    def before(self, world: World) -> None:
        """At each stage before the fault's own."""

    @abstractmethod
    def apply(self, world: World) -> None:
        """Begin. The chain stands still; it may be moved on."""

    def lift(self, world: World) -> None:
        """End."""

    @abstractmethod
    def felt(self, world: World) -> bool:
        """Whether the party was touched: else the case says nothing."""

    @property
    def remedy(self) -> str:
        """What an operator had to do for the party to work again, by its own words; empty where nothing was."""
        return ""


class Strike:
    """A fault upon a world, from its stage on. `begin` and `end` once each."""

    def __init__(self, fault: Fault, world: World) -> None:
        self._fault = fault
        self._world = world
        self._since: float | None = None
        self.done = False

    @property
    def is_on(self) -> bool:
        """Whether it goes on."""
        return self._since is not None

    def begin(self) -> None:
        """The stage is reached."""
        self._fault.apply(self._world)
        self._since = monotonic()
        self._world.hooks = Hooks(self._lift_in_time, lambda: self._fault.most)

    def end(self) -> None:
        """The next stage is reached, or the scene is over: it ends now, if it has lasted."""
        if self._since is not None:
            left = self._since + self._fault.least - monotonic()
            if left > 0:
                self._world.wait(left)
            self._lift()

    def _lift_in_time(self) -> None:
        if self._since is not None and monotonic() - self._since >= self._fault.most:
            self._lift()

    def _lift(self) -> None:
        if self._since is not None:
            self._since = None
            self._fault.lift(self._world)
            self.done = True
