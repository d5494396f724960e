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
    """One fault for one case. `name` is its name in the table.

    A fault lasts at least `least` and at most `most` seconds. Between these limits, it ends at the next
    stage. A fault that blocks the party has `ends_when_felt`: it does not end at the next stage, but as soon
    as the party has felt it. A fault with an infinite `most` lasts until the case ends.
    """

    name: str
    needs: Needs
    operator = "nothing"
    """What an operator must do after the fault, in the words of the table."""
    least = 0.0
    most = 15.0
    ends_when_felt = False

    def prepare(self, world: World) -> None:
        """Prepare what the party runs on, before the party starts."""
        return

    def before(self, world: World) -> None:
        """Called at each stage before the one at which the fault begins."""
        return

    @abstractmethod
    def apply(self, world: World) -> None:
        """Begin the fault. The chain stands still meanwhile, unless the fault itself mines blocks."""

    def lift(self, world: World) -> None:
        """End the fault."""
        return

    @abstractmethod
    def felt(self, world: World) -> bool:
        """Whether the fault has affected the party. If not, the case proves nothing."""

    @property
    def remedy(self) -> str:
        """What the party asked its operator to do before it could work again; empty if it asked for nothing."""
        return ""


class Strike:
    """Applies a fault to a world. Call `stage` at each stage, then `begin` if the fault begins at that stage,
    and `end` when the scene is over.
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
        """Record that a stage is reached. If the fault has begun and lasts until the next stage, end it."""
        if self._since is not None and not self._fault.ends_when_felt and self._fault.most < inf:
            self.end()

    def end(self) -> None:
        """End the fault, if it has not ended yet, as soon as its minimum time is over."""
        if self._since is not None:
            left = self._since + self._fault.least - monotonic()
            if left > 0:
                self._world.wait(left)
            self._lift()

    def _allowance(self) -> float:
        """Additional seconds of patience: the maximum that the fault may last; 0 if that is infinite."""
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
