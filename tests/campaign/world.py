"""The chain of one case, and the parties on it. The chain stands still unless the scene waits for something.

One party is under test: a process (`party`) that reaches each other party through a proxy. All others run in
this process. From `begin` on, blocks are mined only in `skip_to` and while `reach` waits: at once if a
transaction is pending, otherwise every second. So a stage lasts until the scene goes on.
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
"""The terms that `post_task` passes to `Stage.post`. Periods, in seconds, are much longer than a fault lasts.
To end a period, the chain's clock is moved.
"""
PATIENCE: Final = 240.0
"""Seconds that a party has for its next action: twenty times what it needs, because many parties may share
the processor.
"""
STARTING: Final = 600.0
"""Seconds within which all parties must be ready. Each loads some hundred megabytes of libraries."""
POLL: Final = 0.05
DEEPEST: Final = 8
"""Depth of the deepest re-organisation, in blocks."""
BLOCK_SECONDS: Final = 1.0
STAKE: Final = 600
"""Tokens that a solver keeps in the vault for stakes."""
SOLVER, VERIFIER = 1, 2
"""Indices of development accounts."""


class NotReached(AssertionError):
    """Something that `reach` waited for has not come about in time."""


@dataclass
class Hooks:
    """Functions that `reach` calls while it waits."""

    waiting: Callable[[], None] = lambda: None
    allowance: Callable[[], float] = lambda: 0.0
    """Returns the additional seconds of patience."""


class World(Stage):
    """The chain and the parties of one case. `honest` maps names to the accounts that must gain what they are due."""

    def __init__(self, devnet: Devnet, folder: Path, relay: str, stack: ExitStack) -> None:
        super().__init__(devnet, folder, relay, PARAMETERS)
        self.folder = folder
        self.stack = stack
        self.hooks = Hooks()
        self.patience = PATIENCE
        self.disk: Callable[[Path], Disk] = OrdinaryDisk
        """Makes the disk for the home folder of the party under test."""
        self._disk: Disk | None = None
        self.environment: dict[str, str] = {}
        """Environment variables of the process under test, in addition to this process's."""
        self.party: Party | None = None
        self.rpc = stack.enter_context(RpcProxy(devnet.url))
        self.beacon = stack.enter_context(BeaconProxy(relay))
        self.peers: list[PeerProxy] = []
        self.awaited: list[Callable[[], bool]] = []
        """For each started party, a function that says whether it is ready."""
        self._outsiders = [self.submitter]
        """Clients in this process that belong to no node. `reach` tends their transactions, as a node would.
        """
        self._follower = Follower(devnet.connection, self.submitter.contracts, self.deployment.block)
        self._events: list[Event] = []
        self.honest: dict[str, str] = {}
        self.due: dict[str, int] = {}
        """The least that each account must have gained in the end, in token units: 0 for an account that is
        not listed.
        """
        self._mined = 0.0
        self.published = folder / "published"
        self.published.mkdir()
        hash_ = write_bundle(tiny_bundle(), self.published / "new")
        self.bundles = (self.published / "new").rename(self.published / hash_.hex())
        self.bundle_server = ""
        """The URL of the bundle server; if empty, `post_task` starts one in this process."""

    def begin(self) -> None:
        """Wait until all parties started so far are ready. Then only `reach` and `skip_to` mine blocks."""
        self.reach(lambda: all(ready() for ready in self.awaited), STARTING)
        self.devnet.connection.request("evm_setAutomine", False)
        self.devnet.mine(DEEPEST + 1)  # so that no re-organisation reverts what was there from the start

    # ------------------------------------------------------------------ time

    def reach(self, what: Callable[[], bool], seconds: float | None = None) -> None:
        """Mine blocks until `what` holds; then the chain stands still. Meanwhile, restart the party under
        test if its supervisor would. Raises NotReached if `what` does not hold in time, and NeedsHand if a
        restart of the party does not help.
        """
        began, patience = monotonic(), self.patience if seconds is None else seconds
        while not _holds(what):
            pending = int(self.devnet.connection.request("txpool_status")["pending"], 16)
            if pending and _holds(what):  # the pending transaction may be what is waited for
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
        """Let the chain go on for some seconds, for faults that last a given time."""
        end = monotonic() + seconds
        self.reach(lambda: monotonic() >= end, seconds + self.patience)

    def act(self, work: Callable[[], Found], until: Callable[[], bool] | None = None) -> Found:
        """Run `work` and return its result. `work` may wait for blocks, for example until its transaction is
        mined. With `until`, the chain stands still as soon as that condition holds; the rest of `work` must
        need no further block.
        """
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            self.reach(running.done if until is None else lambda: until() or running.done())
            return running.result()

    def party_said(self, event: str, **fields: object) -> bool:
        """Whether the party under test has logged this event with these fields."""
        assert self.party is not None, "it was started"
        return self.party.said(event, 0, **fields)

    def skip_to(self, time: int) -> None:
        """Move the chain's time past `time`, unless it is past already. Then mine more blocks than a
        re-organisation replaces, so that no re-organisation reverts the new time or anything before it.
        """
        if time >= self.submitter.now():
            super().skip_to(time)
            self.devnet.mine(DEEPEST + 1)

    # ------------------------------------------------------------------ what the chain says

    def view(self, task: int) -> TaskView:
        """The task's present state on the chain."""
        return self.submitter.market.task(task)

    def happened(self, name: str, **fields: object) -> list[Event]:
        """The events with this name and these arguments that are on the chain now."""
        batch = self._follower.poll()
        stand = [e for e in self._events if batch.rewound is None or e.log.block <= batch.rewound]
        self._events = [*stand, *batch.events]
        return [e for e in self._events if e.name == name and fields.items() <= e.arguments.items()]

    def seats(self, task: int) -> Sequence[Seat]:
        """The seats of a drawn task."""
        return self.submitter.audit.seats(task)

    # ------------------------------------------------------------------ parties

    def peer(self, url: str) -> str:
        """The URL of a new proxy in front of another party, for the party under test to use."""
        proxy = self.stack.enter_context(PeerProxy(url))
        self.peers.append(proxy)
        return proxy.url

    def outsider(self, index: int) -> Client:
        """A client of a development account, for the scene itself to use. The account is not one of `honest`."""
        client = self.act(lambda: self.client(f"dev:{index}"))
        self.stack.callback(client.close)
        self._outsiders.append(client)
        return client

    def disk_of(self, kind: str) -> Disk:
        """The disk with the home folder of the party under test."""
        if self._disk is None:
            self._disk = self.disk(self.folder / f"{kind}-under-test")
            self.stack.callback(self._disk.close)
        return self._disk

    def at(self, home: str) -> World:
        """The same world with another home folder, to start a party in this process."""
        other = copy(self)
        other.home = Home(self.folder / home)
        return other

    def gains(self, account: str, units: int) -> None:
        """Raise by `units` what an account must gain at least if it is honest. Negative `units` lower it."""
        self.due[account] = self.due.get(account, 0) + units

    def post_task(self, **changes: Any) -> int:
        """Post the tiny task with its bundle served over HTTP; returns its id. `changes` override `TERMS`."""
        if not self.bundle_server:
            serving = self.stack.enter_context(Serving(application(self.published), HOST, 0))
            self.bundle_server = self.peer(serving.url)
        bundle = f"{self.bundle_server}/bundles/{self.bundles.name}"
        terms: dict[str, Any] = {**TERMS, **changes}
        return self.act(lambda: self.post(bundle=bundle, **terms))


def _holds(what: Callable[[], bool]) -> bool:
    """Whether `what` holds; False while the task is unknown, because a re-organisation has reverted its
    posting.
    """
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
    """Yields the world of a fresh chain with everything deployed. Until `World.begin`, a block is mined for
    each transaction.
    """
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
