"""A chain of the case's own that stands still whenever nobody waits for something, and the parties on it.

One party is under test: a process (`party`) that reaches everybody through a proxy each. All others are nodes in this
process. A block is made only while `reach` waits, at once where a transaction is pending, otherwise each second: so
nothing that the chain says changes between two waits, and a stage that was reached is one until somebody goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, TypeVar

from assay.beacon import development_beacon
from assay.serving import application
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.client import Client
from protocol.chain.devnet import HOST, Devnet
from protocol.chain.errors import Reverted
from protocol.chain.events import Follower
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.receipts import Event
from protocol.chain.views import Seat, TaskView
from protocol.node.home import VARIABLE, Home
from protocol.node.serving import Serving
from protocol.tasks.bundles import write_bundle
from tests.campaign.beacon_proxy import BeaconProxy
from tests.campaign.disks import Disk, OrdinaryDisk
from tests.campaign.party import Party
from tests.campaign.peer_proxy import PeerProxy
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.solver_stage import Stage, tiny_bundle

Found = TypeVar("Found")

PARAMETERS: Final = replace(DEVNET, draw_delay=120, stall_period=8_000, unbonding_period=8_200)
TERMS: Final[dict[str, int | str]] = {
    "bidding_period": 120,
    "extension": 40,
    "training_period": 1_800,
    "attest_period": 800,
    "challenge_period": 1_200,
    "move_time": 400,
    "clock": 600,
    "stake": 500 * TOKEN,
    "seat_lock": 8 * TOKEN,
}
"""Periods in seconds, long beside the time that a fault lasts: the clock is moved where all wait for their end."""
PATIENCE: Final = 240.0
"""Seconds for a party to do what is due, also where its processor is shared by many: twenty times what it needs."""
STARTING: Final = 600.0
"""Seconds for all parties to be ready: each loads some hundred megabytes of libraries."""
POLL: Final = 0.05
DEEPEST: Final = 8
"""Blocks of the deepest re-organisation."""
BLOCK_SECONDS: Final = 1.0
STAKE: Final = 600
"""Tokens that a solver keeps for stakes."""
SOLVER, VERIFIER = 1, 2
"""Indices of development accounts."""
DAWDLE: Final = "from tests.unit.solver import killing; killing.dawdle({seconds}); "


class NotReached(AssertionError):
    """What somebody has to do was not done in time."""


@dataclass
class Hooks:
    """What happens while the world waits."""

    waiting: Callable[[], None] = lambda: None
    allowance: Callable[[], float] = lambda: 0.0
    """Seconds of patience besides."""


class World(Stage):
    """The stage of one case. `honest` are the accounts that must lose nothing, by name."""

    def __init__(self, devnet: Devnet, folder: Path, relay: str, stack: ExitStack) -> None:
        super().__init__(devnet, folder, relay, PARAMETERS)
        self.folder = folder
        self.stack = stack
        self.hooks = Hooks()
        self.patience = PATIENCE
        self.disk: Callable[[Path], Disk] = OrdinaryDisk
        """What makes the disk that the party's home folder lies on."""
        self._disk: Disk | None = None
        self.environment: dict[str, str] = {}
        """Of the party's process, besides this one's."""
        self.party: Party | None = None
        self.rpc = stack.enter_context(RpcProxy(devnet.url))
        self.beacon = stack.enter_context(BeaconProxy(relay))
        self.peers: list[PeerProxy] = []
        self.awaited: list[Callable[[], bool]] = []
        """Whether each party is ready."""
        self._outsiders = [self.submitter]
        """Clients of this process's that no node tends."""
        self._follower = Follower(devnet.connection, self.submitter.contracts, self.deployment.block)
        self._events: list[Event] = []
        self.honest: dict[str, str] = {}
        self.due: dict[str, int] = {}
        """The least that accounts have gained in the end, in token units, where that is not nothing."""
        self._mined = 0.0
        self.published = folder / "published"
        self.published.mkdir()
        hash_ = write_bundle(tiny_bundle(), self.published / "new")
        self.bundles = (self.published / "new").rename(self.published / hash_.hex())
        self.bundle_server = ""
        """Where the bundle is served; without, a server of this process's does it."""

    def begin(self) -> None:
        """Everybody who is there from the start is started: wait for them, and from now on for every block."""
        self.reach(lambda: all(ready() for ready in self.awaited), STARTING)
        self.devnet.connection.request("evm_setAutomine", False)
        self.devnet.mine(DEEPEST + 1)  # no re-organisation takes back what was there from the start

    # ------------------------------------------------------------------ time

    def reach(self, what: Callable[[], bool], seconds: float | None = None) -> None:
        """Make blocks until something holds, from which on the chain stands still. Raises NotReached, NeedsHand."""
        began, patience = monotonic(), self.patience if seconds is None else seconds
        while not _holds(what):
            pending = int(self.devnet.connection.request("txpool_status")["pending"], 16)
            if pending and _holds(what):  # it may be this transaction that was waited for
                return
            if pending or monotonic() - self._mined >= BLOCK_SECONDS:
                self.devnet.mine()
                self._mined = monotonic()
                continue
            self.hooks.waiting()
            if self.party is not None:
                self.party.mind()
            for client in self._outsiders:
                client.tend()
            if monotonic() - began > patience + self.hooks.allowance():
                raise NotReached(f"not within {patience:.0f} s")
            sleep(POLL)

    def wait(self, seconds: float) -> None:
        """Make blocks for some seconds: for faults that are a time by their nature."""
        end = monotonic() + seconds
        self.reach(lambda: monotonic() >= end, seconds + self.patience)

    def act(self, work: Callable[[], Found], until: Callable[[], bool] | None = None) -> Found:
        """Do what waits for blocks, such as sending a transaction of a party of this process. With `until` the chain
        stands still from where that holds, which must need no further block.
        """
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            self.reach(running.done if until is None else lambda: until() or running.done())
            return running.result()

    def party_said(self, event: str, **fields: object) -> bool:
        """Whether the party under test has logged it."""
        assert self.party is not None, "it was started"
        return self.party.said(event, 0, **fields)

    def skip_to(self, time: int) -> None:
        """Let the chain's time go past `time`, where it is not, with more blocks than a re-organisation has: none takes
        back what would be minutes old, nor the time.
        """
        if time >= self.submitter.now():
            super().skip_to(time)
            self.devnet.mine(DEEPEST + 1)

    # ------------------------------------------------------------------ what the chain says

    def view(self, task: int) -> TaskView:
        """The task now."""
        return self.submitter.market.task(task)

    def happened(self, name: str, **fields: object) -> list[Event]:
        """Events of a name with these arguments, as the chain has them now."""
        batch = self._follower.poll()
        stand = [e for e in self._events if batch.rewound is None or e.log.block <= batch.rewound]
        self._events = [*stand, *batch.events]
        return [e for e in self._events if e.name == name and fields.items() <= e.arguments.items()]

    def seats(self, task: int) -> Sequence[Seat]:
        """The seats of a drawn task."""
        return self.submitter.audit.seats(task)

    # ------------------------------------------------------------------ parties

    def peer(self, url: str) -> str:
        """The address of a proxy before another party, as the party under test sees it."""
        proxy = self.stack.enter_context(PeerProxy(url))
        self.peers.append(proxy)
        return proxy.url

    def outsider(self, index: int) -> Client:
        """A client for a scene's own use, of an account that must not be honest."""
        client = self.act(lambda: self.client(f"dev:{index}"))
        self.stack.callback(client.close)
        self._outsiders.append(client)
        return client

    def disk_of(self, kind: str) -> Disk:
        """What the home folder of the party under test lies on."""
        if self._disk is None:
            self._disk = self.disk(self.folder / f"{kind}-under-test")
            self.stack.callback(self._disk.close)
        return self._disk

    def at(self, home: str) -> World:
        """The same world for a party of this process with its own home folder."""
        other = copy(self)
        other.home = Home(self.folder / home)
        return other

    def gains(self, account: str, units: int) -> None:
        """An account is to have gained this besides all that it gains elsewhere, if it is honest."""
        self.due[account] = self.due.get(account, 0) + units

    def post_task(self, **changes: Any) -> int:
        """Post the tiny task, whose bundle is served by HTTP."""
        if not self.bundle_server:
            serving = self.stack.enter_context(Serving(application(self.published), HOST, 0))
            self.bundle_server = self.peer(serving.url)
        bundle = f"{self.bundle_server}/bundles/{self.bundles.name}"
        terms: dict[str, Any] = {**TERMS, **changes}
        return self.act(lambda: self.post(bundle=bundle, **terms))


def _holds(what: Callable[[], bool]) -> bool:
    """Whether something holds; of a task that a re-organisation has taken back, nothing does."""
    try:
        return what()
    except Reverted as error:
        if error.name != "UnknownTask":
            raise
        return False


def address(index: int) -> str:
    """The address of a development account."""
    return str(development_account(index, DEVELOPMENT_CHAIN).address)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A fresh chain with everything deployed. Until `World.begin` it makes a block for each transaction."""
    folder.mkdir(parents=True)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder / "assay-home")
    try:
        with (
            Devnet(block_time=None) as devnet,
            development_beacon(devnet.connection, 0) as beacon,
            ExitStack() as stack,
        ):
            made = World(devnet, folder, beacon.url, stack)
            stack.callback(made.submitter.close)
            yield made
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
