"""Start times on a chain with many past tasks: how long until a node logs that it follows the chain, or until
a command ends.

Each node starts twice with the same home folder. In its first start, all past tasks are new to it; in its
second start, they are already recorded. For comparison, the same starts are timed on an empty chain, where
they take only the time for imports, the check of the machine's arithmetic, and the registration.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from assay.beacon import development_beacon
from benchmarks.measure import Row
from benchmarks.soak.history import History
from benchmarks.soak.usage import usage_of
from protocol.beacon.relays import Relays
from protocol.chain.accounts import open_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.deployment import deployment_file
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sender, Sending
from sim.replay.stage import own_home

PAST: Final = 1_000
GOAL: Final = "2 s"
STATUS_GOAL: Final = "1 s"
RUNS: Final = 3
FOLLOWS: Final = "following"
"""The log event that ends the measurement of a node."""
SENDING: Final = Sending(poll=0.01)
TOKENS: Final = 10_000 * TOKEN
NODES: Final = {
    "solver run": ("solver", "run", "--port", "0", "--stake", "100", "--log-json"),
    "verifier watch": ("verifier", "watch", "--port", "0", "--stake", "10", "--log-json"),
}
STATUS: Final = (("assay", "status"), ("assay", "status", "--past"))


@dataclass(frozen=True)
class Start:
    """Wall-clock and processor time of a start, in seconds."""

    wall: float
    processor: float


class Ground:
    """A chain with deployed contracts, on which nodes with new accounts are started."""

    def __init__(self, devnet: Devnet, relay: str, folder: Path, stack: ExitStack) -> None:
        self._devnet = devnet
        self._relay = relay
        self._folder = folder
        self._homes = 0
        with Sender(devnet.connection, open_account("dev:0", devnet.chain_id), SENDING) as sender:
            deployment = deploy(sender)
        self._file = deployment_file(deployment.chain_id)
        self._submitter, solver = (
            stack.enter_context(connect(devnet.url, deployment, f"dev:{index}", sending=SENDING))
            for index in (1, 2)
        )
        relays = Relays(deployment.beacon, (relay,), self._submitter.beacon.is_signed_round)
        self.history = History(devnet, self._submitter, solver, relays.signature)

    def starts(self, command: Sequence[str], runs: int) -> list[tuple[Start, Start]]:
        """Time the first and the second start of `runs` new nodes, each with a new home folder and account."""
        found = []
        for _ in range(runs):
            with self._newcomer() as (account, home):
                first, second = (self._start(command, account, home) for _ in range(2))
                found.append((first, second))
        return found

    def make_blocks_every(self, seconds: int) -> None:
        """From now on, make a block every `seconds`, even if it is empty."""
        self._devnet.make_blocks_every(seconds)

    def ends(self, command: Sequence[str], runs: int) -> list[Start]:
        """Time a command from its start to its end, `runs` times."""
        return [self._run(command) for _ in range(runs)]

    @contextmanager
    def _newcomer(self) -> Iterator[tuple[int, Path]]:
        self._homes += 1
        account, home = 2 + self._homes, self._folder / f"home-{self._homes}"
        home.mkdir()
        client: Client = self._submitter
        with connect(self._devnet.url, client.deployment, f"dev:{account}", sending=SENDING) as own:
            own.token.mint(own.address, TOKENS)
        yield account, home

    @contextmanager
    def idle(self, command: Sequence[str]) -> Iterator[int]:
        """Run a node with a new account; yield its process id. The node follows the chain and has nothing
        else to do.
        """
        with self._newcomer() as (account, home), self._following(command, account, home) as pid:
            yield pid

    def _start(self, command: Sequence[str], account: int, home: Path) -> Start:
        began = time.monotonic()
        with self._following(command, account, home) as pid:
            return Start(time.monotonic() - began, usage_of(pid).seconds)

    @contextmanager
    def _following(self, command: Sequence[str], account: int, home: Path) -> Iterator[int]:
        """Run a node and wait until it has caught up with the chain; yield its process id."""
        process = subprocess.Popen(
            [*self._whole(command), "--dev-account", str(account)],
            env=self._environment(home),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith("{") and json.loads(line)["event"] == FOLLOWS:
                    break
            else:
                raise RuntimeError(
                    f"expected {' '.join(command)} to follow the chain, it has ended: run it by hand"
                )
            yield process.pid
        finally:
            process.terminate()
            process.communicate()

    def _run(self, command: Sequence[str]) -> Start:
        began, before = time.monotonic(), os.times()
        subprocess.run(
            self._whole(command), env=self._environment(self._folder), check=True, stdout=subprocess.DEVNULL
        )
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return Start(time.monotonic() - began, used)

    def _whole(self, command: Sequence[str]) -> list[str]:
        binary, *flags = command
        chain = ["--rpc", self._devnet.url, "--deployment", str(self._file)]
        return [str(Path(sys.executable).with_name(binary)), *flags, *chain]

    def _environment(self, home: Path) -> Mapping[str, str]:
        return {**os.environ, "ASSAY_HOME": str(home), "ASSAY_RELAYS": self._relay}


@contextmanager
def ground() -> Iterator[Ground]:
    """Yield a chain with nothing on it except its contracts."""
    with ExitStack() as stack:
        stack.enter_context(own_home())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="assay-starts-")))
        devnet = stack.enter_context(Devnet(block_time=None))
        beacon = stack.enter_context(development_beacon(devnet.connection, 0))
        yield Ground(devnet, beacon.url, folder, stack)


def rows(past: int = PAST, runs: int = RUNS) -> list[Row]:
    """Rows with the median seconds of each kind of start."""
    with ground() as stage:
        alone = {name: stage.starts(command, runs) for name, command in NODES.items()}
        stage.history.make(past)
        found = []
        for name, command in NODES.items():
            beside = stage.starts(command, runs)
            for place, which in enumerate(("first", "second")):
                what = f"`{name}` until it follows a chain with {past:,} past tasks, {which} start of a home folder"
                found.append(
                    _row(what, [pair[place] for pair in beside], [pair[place] for pair in alone[name]])
                )
        return found


def status_rows(past: int = PAST, runs: int = 2 * RUNS) -> list[Row]:
    """Rows with the median seconds that `assay status` takes, from the process's start to its end."""
    with ground() as stage:
        without = {command: stage.ends(command, runs) for command in STATUS}
        stage.history.make(past)
        return [
            _row(
                f"`{' '.join(command)}` on a chain with {past:,} past tasks",
                stage.ends(command, runs),
                without[command],
                STATUS_GOAL,
            )
            for command in STATUS
        ]


def _row(what: str, starts: Sequence[Start], alone: Sequence[Start], goal: str = GOAL) -> Row:
    wall, processor = (_median(starts, name) for name in ("wall", "processor"))
    value = (
        f"{wall:.1f} s, {processor:.1f} s of processor time; on one without {_median(alone, 'wall'):.1f} s, "
        f"{_median(alone, 'processor'):.1f} s"
    )
    return Row(what, value, goal)


def _median(starts: Sequence[Start], name: str) -> float:
    return median(float(getattr(start, name)) for start in starts)
