"""Faults of the party's process and machine: killed, stopped, or limited to a tenth of the processor."""

from __future__ import annotations

from threading import Event, Thread
from time import sleep
from typing import Final

from tests.campaign.fault import Fault, Needs
from tests.campaign.party import Party
from tests.campaign.world import World

STOPPED_SECONDS: Final = 20.0
PERIOD: Final = 0.05
"""Seconds of a cycle. A slowed process runs for the fraction `SHARE` of each cycle."""
SHARE: Final = 0.1


class Killed(Fault):
    """SIGKILL, as from the kernel's out-of-memory killer or in a power cut, then an immediate restart."""

    name = "kill -9"
    needs = Needs.PROCESS
    operator = "start the same command again, or have a supervisor do it"
    most = 0.0

    def apply(self, world: World) -> None:
        """Kill the party and start it again."""
        party = party_of(world)
        party.kill()
        party.start()

    def felt(self, world: World) -> bool:
        """Whether the party was started again."""
        return party_of(world).starts > 1


class Stopped(Fault):
    """SIGSTOP for 20 seconds, while the chain goes on."""

    name = "SIGSTOP for 20 s"
    needs = Needs.PROCESS
    least = most = STOPPED_SECONDS

    def __init__(self) -> None:
        self._silent = False

    def apply(self, world: World) -> None:
        """Suspend the party."""
        party_of(world).pause()
        self._lines = len(party_of(world).lines())

    def lift(self, world: World) -> None:
        """Resume the party."""
        party = party_of(world)
        self._silent = len(party.lines()) <= self._lines + 1  # a line may have been on its way
        party.resume()

    def felt(self, world: World) -> bool:
        """Whether the party logged at most one line while it was stopped."""
        return self._silent


class Slowed(Fault):
    """The party has a tenth of the processor: it is stopped for nine tenths of each period."""

    name = "a tenth of the CPU"
    needs = Needs.PROCESS
    most = 25.0

    def __init__(self) -> None:
        self._ended = Event()
        self._turns = 0

    def apply(self, world: World) -> None:
        """Start a thread that slows the party."""
        self._slowing = Thread(target=self._slow, args=(party_of(world),))
        self._slowing.start()

    def lift(self, world: World) -> None:
        """Stop slowing the party."""
        self._ended.set()
        self._slowing.join()

    def felt(self, world: World) -> bool:
        """Whether the party was stopped more than once."""
        return self._turns > 1

    def _slow(self, party: Party) -> None:
        while not self._ended.is_set():
            party.pause()
            self._ended.wait(PERIOD * (1 - SHARE))
            party.resume()
            self._turns += 1
            sleep(PERIOD * SHARE)


def party_of(world: World) -> Party:
    """The party under test."""
    assert world.party is not None, "the scene has started it"
    return world.party
