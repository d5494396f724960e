"""The stage of a soak: a development chain, one solver, verifiers with many accounts each, and occasional
cheats.

The solver and the verifiers are `solver run` and `verifier watch` processes, each with its own home folder
and a counting proxy in front of the chain's node. A cheat's process connects to the node directly. A stopped
soak leaves everything in its folder, including the chain's state, and the next call resumes from it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from assay.beacon import development_beacon
from assay.submitting import post
from benchmarks.soak.plan import CHEAT, SOLVER, STAKE, SUBMITTER, TERMS, VERIFIER_STAKE, Plan
from benchmarks.soak.proxy import Proxies
from examples.demo.children import Children
from examples.demo.tasks import PARAMETERS
from protocol.beacon.relays import Relays
from protocol.chain.accounts import development_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.deployment import load_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sender, Sending
from protocol.commitments.tensors import Tensor
from protocol.node.home import VARIABLE, Home
from protocol.numerics.types import to_bytes
from protocol.tasks.bundles import Bundle, committed_terms, write_bundle
from protocol.tasks.task import Terms
from sim.replay.training import HALF, Training

ROOT: Final = Path(__file__).parents[2]
CHAIN: Final = "chain.json"
"""The file that holds the chain's state after the chain's node has ended."""
STATES: Final = 64
"""Number of newest blocks whose states the chain's node keeps. Nothing requests older states, and each state
is as large as all contracts together.
"""
PATIENCE: Final = 600.0
"""Limit in seconds on each wait while the processes start. All processes start at the same time."""
RECENT: Final = 16
"""After a restart of the chain, the newest block and this many blocks before it are searched for the last
block made before the restart. That block is certain to be among them.
"""
PURSE: Final = 5_000 * TOKEN
SENDING: Final = Sending(timeout=120.0, poll=0.05)


class Stage:
    """A context. Entering it starts the stage; leaving it ends all processes and saves the chain."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self._stack = ExitStack()
        # One thread each: seven processes share the machine.
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.children = Children(folder / "logs", threads, ROOT)
        self.chain: Devnet
        self.client: Client
        self.proxies: Proxies
        self._relays: Relays
        self._environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        try:
            return self._set_up()
        except BaseException:
            self._stack.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def home(self, name: str) -> Path:
        """The home folder of the party `name`."""
        return self.folder / "home" / name

    def post(self) -> int:
        """Post the next task and return its number."""
        number = self.client.market.tasks() + 1
        task = post(self.client, self._terms(number), self._relays.signature, TERMS["verifiers"])
        assert task == number, "nobody else posts here"
        return task

    def send_cheat(self, task: int) -> None:
        """Start the cheat of a task, unless it has already been started in this session."""
        name = f"cheat-{task}"
        if name in self.children:
            return
        command = [sys.executable, "-m", "benchmarks.soak.cheat", "--rpc", self.chain.url]
        command += ["--deployment", str(self._deployment), "--dev-account", str(CHEAT)]
        command += ["--task", str(task), "--stake", str(2 * STAKE)]
        self.children.start(name, command, self.home("cheat"), self._environment)

    def is_running(self, name: str) -> bool:
        """Whether a process was started and has not ended."""
        return name in self.children and self.children.exit_code(name) is None

    # ------------------------------------------------------------------ setting up

    def _set_up(self) -> Self:
        own = Home(self.home("submitter"))
        own.root.mkdir(parents=True, exist_ok=True)
        os.environ[VARIABLE] = str(own.root)
        state = self.folder / CHAIN
        self.chain = self._stack.enter_context(Devnet(block_time=None, states=STATES, state=state))
        state.unlink(missing_ok=True)  # rewritten when all have ended
        self._deployment = own.deployment(self.chain.chain_id)
        self._keep_time()
        beacon = self._stack.enter_context(development_beacon(self.chain.connection, 0))
        if not self._deployment.is_file():
            account = development_account(SUBMITTER, self.chain.chain_id)
            with Sender(self.chain.connection, account, SENDING) as sender:
                deploy(sender, PARAMETERS)
        deployment = load_deployment(self._deployment)
        self.client = self._stack.enter_context(
            connect(self.chain.url, deployment, f"dev:{SUBMITTER}", sending=SENDING)
        )
        self._relays = Relays(deployment.beacon, (beacon.url,), self.client.beacon.is_signed_round)
        bundles = self.folder / "bundles"
        self._environment = {"ASSAY_RELAYS": beacon.url, "ASSAY_BUNDLES": bundles.as_uri()}
        self._mint()
        self.chain.connection.request("evm_setAutomine", False)
        self.chain.connection.request("evm_setIntervalMining", 1)
        self.proxies = self._stack.enter_context(Proxies(self.chain.url, self.plan.parties))
        self._stack.enter_context(self.children)
        self._start()
        return self

    def _keep_time(self) -> None:
        """Set the clock of a resumed chain if it is behind the chain's newest blocks.

        The chain's clock was moved in earlier sessions, but the restarted node uses the machine's time, also
        for blocks that it makes before this call.
        """
        connection = self.chain.connection
        newest = connection.block().number
        latest = max(connection.block(number).time for number in range(max(0, newest - RECENT), newest + 1))
        behind = latest - int(time.time())
        if behind > 0:
            connection.request("evm_increaseTime", hex(behind + 1), attempts=1)

    def _mint(self) -> None:
        token, accounts = self.client.token, [SUBMITTER, SOLVER, CHEAT]
        for index in [*accounts, *(one for group in self.plan.verifiers.values() for one in group)]:
            address = str(development_account(index, self.chain.chain_id).address)
            if token.balance_of(address) < PURSE:
                token.mint(address, self.plan.tasks * PURSE if index == SUBMITTER else 2 * PURSE)

    def _start(self) -> None:
        honest = [part for task in self.plan.honest for part in ("--task", str(task))]
        run = ["run", "--stake", str(10 * STAKE), *honest]
        self._party("solver", "solver", [*run, "--dev-account", str(SOLVER)])
        for name, (first, *others) in self.plan.verifiers.items():
            further = [part for index in others for part in ("--further-account", f"dev:{index}")]
            watch = ["watch", "--stake", str(VERIFIER_STAKE), *further]
            self._party(name, "verifier", [*watch, "--dev-account", str(first)])
        accounts = self.plan.processes * self.plan.accounts
        self._wait("registered verifiers", lambda: self.client.audit.registered() == accounts)
        for name in self.plan.parties:
            self._wait(f"{name} following", lambda: self.children.has_written(name, '"following"'))  # noqa: B023

    def _party(self, name: str, command: str, arguments: Sequence[str]) -> None:
        binary = str(Path(sys.executable).with_name(command))
        common = ["--rpc", self.proxies.urls[name], "--deployment", str(self._deployment), "--port", "0"]
        log = self.children.log(name)
        log.unlink(missing_ok=True)  # of an earlier session
        self.children.start(
            name, [binary, *arguments, *common, "--log-json"], self.home(name), self._environment
        )

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            self.children.require_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"expected {what} within {PATIENCE:.0f} s; see {self.folder / 'logs'}")
            time.sleep(0.3)

    def _terms(self, number: int) -> Terms:
        """Terms of a task with a unique program, and therefore a unique bundle."""
        training, folder = Training(TERMS["segments"], HALF + number), self.folder / "bundles" / str(number)
        program = training.program
        state = tuple(
            Tensor(name, int(type_.dtype), type_.shape, to_bytes(value, type_.dtype))
            for (name, value), type_ in zip(training.initial.items(), program.state_types, strict=True)
        )
        (data,) = training.fixed
        dataset = (Tensor("data", 0, tuple(data.shape), to_bytes(data, program.fixed_types[0].dtype)),)
        bundle = Bundle(f"soak-{number}", program, state, dataset, ())
        hash_ = write_bundle(bundle, folder)
        return Terms(**committed_terms(bundle), **TERMS, bundle_hash=hash_, bundle=folder.as_uri())
