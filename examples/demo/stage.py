"""The stage: a chain, the contracts, tokens, a bundle server, verifiers, the solvers and their tasks.

Every party is a separate process that knows the node's URL and the deployment file. After the demo, its
folder still has the logs and the parties' home folders.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from assay.beacon import development_beacon
from assay.description import read
from assay.source import captured
from assay.submitting import Prepared, post, prepare, require_served
from examples.demo.children import Children
from examples.demo.errors import StageError
from examples.demo.preloaded import Forked
from examples.demo.stories import POSTED, STORIES, Story
from examples.demo.tasks import PARAMETERS, summary, terms
from protocol.beacon.relays import Relays
from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS, development_account
from protocol.chain.client import Client, connect
from protocol.chain.deploy import deploy
from protocol.chain.devnet import HOST, Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sender
from protocol.chain.views import Offer
from protocol.node.home import VARIABLE, Home
from protocol.node.http import free_port
from protocol.tasks.task import Terms

ROOT = Path(__file__).parents[2]
"""The repository, whose folder `tests` contains the adversaries."""
DEPLOYER, SUBMITTER, VERIFIER, ACCUSER, SILENT, SEAT, ACCOMPLICE, OUTSOURCER, ONE, OTHER, FIRST_SOLVER = (
    range(11)
)
FIRST_SEATED = FIRST_SOLVER + len(STORIES)
FIRST_REFUSED = DEVELOPMENT_ACCOUNTS - 5
"""Index of the first of the last five development accounts. These five are `REFUSED`; `SEATED` are the
accounts from `FIRST_SEATED` to just before these five. One process runs all accounts in `SEATED`; another
process runs the account `VERIFIER`.
"""
SEATED = range(FIRST_SEATED, FIRST_REFUSED)
REFUSED = range(FIRST_REFUSED, DEVELOPMENT_ACCOUNTS)
"""Accounts of the two seats and of the three jurors in the story with withheld data."""
REFUSED_LEVEL = 3
"""Level of the stakes of REFUSED: 8 units, which cover the lock of their story. Lower levels do not."""
SILENT_LEVEL = 7
"""Level of the silent verifier's stake: 128 units, while ordinary verifiers have one unit each."""
SEAT_LEVEL = 2
"""Level of the honest seat's stake in the accomplice's story: 4 units. They cover the lock of that story; one
unit would not.
"""
OUTSOURCER_LEVEL = 7
"""Level of the outsourcing seat's stake: 128 units."""
PAIR_LEVEL = 2
"""Level of both accounts' stakes in the rubber stamp's story: 4 units. They cover the lock of that story; one
unit would not.
"""
SEAT_NAME = "seat-verifier"
OUTSOURCER_NAME = "outsourcer"
STAMP_NAME = "rubber-stamp"
LOOK_NAME = "look-verifier"
FED_NAME = "fed-seat"
REFUSED_NAME = "refused-verifier"
BLOCK_SECONDS = 1
MARK = ".assay-demo"
"""The name of the file that marks a folder as that of a demo. A folder with this file may be emptied."""
PURSE = 5_000 * TOKEN
READY_SECONDS = 600.0
"""Limit in seconds on each wait for parties to become ready: ten times what two idle cores need."""


class Stage:
    """A context. Entering it sets up the stage, and leaving it ends everything. `say` prints progress."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._stack = ExitStack()
        if not (ROOT / "tests" / "adversaries").is_dir():
            raise StageError(
                expected=f"the adversaries in {ROOT / 'tests'}",
                got="none",
                remedy="run it in a checkout of the repository",
            )
        clear(folder)
        # One thread each, as many processes share the machine. torch reads this when the fork server loads
        # it.
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        os.environ.update(threads)
        # Many nodes share the machine, so each takes a free port for monitoring.
        self.children = Children(folder / "logs", {**threads, "ASSAY_MONITOR_PORT": "0"}, ROOT, Forked)
        self.chain: Devnet
        self.client: Client
        self.prepared: Mapping[str, Prepared]
        """The captured tasks, by the name of their example."""
        self.home = Home(self._home("submitter"))
        self.tasks: dict[str, int] = {}

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

    @property
    def who(self) -> Mapping[str, str]:
        """Names of the accounts, by address."""
        names = {SUBMITTER: "the submitter", VERIFIER: "the verifier", ACCUSER: "the accuser"}
        names |= {SILENT: "the silent verifier", SEAT: "the honest seat", ACCOMPLICE: "the accomplice"}
        names |= {OUTSOURCER: "the idle verifier", ONE: "verifier X", OTHER: "verifier Y"}
        names |= {index: f"verifier {k}" for k, index in enumerate(SEATED, start=2)}
        names |= {index: f"verifier {letter}" for letter, index in zip("PQRST", REFUSED, strict=True)}
        names |= {FIRST_SOLVER + k: f"solver {story.solver}" for k, story in enumerate(STORIES)}
        return {self.address(index): name for index, name in names.items()}

    def address(self, index: int) -> str:
        """Address of a development account."""
        return str(development_account(index, self.chain.chain_id).address)

    def endpoint(self, index: int) -> str:
        """The service address that an account has announced; empty if it has announced none."""
        return self.client.market.endpoint_of(self.address(index))

    def solver(self, story: Story) -> int:
        """Account index of a story's solver."""
        return FIRST_SOLVER + STORIES.index(story)

    def process(self, story: Story) -> str:
        """Process name of a story's solver."""
        return f"{story.letter}-{story.solver}"

    @property
    def mortal(self) -> set[str]:
        """Processes that may end with any exit code, because their end is part of their story."""
        return {self.process(story) for story in STORIES if story.cheat is not None}

    # ------------------------------------------------------------------ setting up

    def _set_up(self) -> Self:
        os.environ[VARIABLE] = str(self.home.root)
        # Until the play begins, each transaction gets a block: the set-up takes 150 transactions in sequence.
        self.chain = self._stack.enter_context(Devnet(block_time=None, log=self.children.log("anvil")))
        beacon = self._stack.enter_context(development_beacon(self.chain.connection, 0))
        os.environ["ASSAY_RELAYS"] = self._beacon = beacon.url
        self._stack.enter_context(self.children)
        self._say(f"{self.chain.client} on {self.chain.url}; its beacon on {beacon.url}")
        with ThreadPoolExecutor(1) as beside:
            preparing = beside.submit(self._prepare)
            with Sender(self.chain.connection, development_account(DEPLOYER, self.chain.chain_id)) as sender:
                deploy(sender, PARAMETERS)
            self._say("contracts deployed")
            with connect(self.chain.url, account=f"dev:{DEPLOYER}") as client:
                self._mint(client)
            self.prepared = preparing.result()
        for prepared in self.prepared.values():
            self._say(f"captured {summary(prepared)}")
        self.client = self._stack.enter_context(connect(self.chain.url, account=f"dev:{SUBMITTER}"))
        url = self._serve_bundles()
        self._start_parties()
        self.client.fund(PURSE)
        self._wait("registered verifiers", lambda: self.client.audit.registered() > len(SEATED))
        self._wait("all solvers to be ready", self._all_announced)
        self._post(url)
        self.chain.make_blocks_every(BLOCK_SECONDS)
        self._say(f"all posted; from now on a block each {BLOCK_SECONDS} s")
        return self

    def _prepare(self) -> dict[str, Prepared]:
        names = dict.fromkeys(story.example for story in STORIES)
        files = {name: ROOT / "examples" / f"{name}.toml" for name in names}
        return {name: prepare(captured(read(file)), self.home) for name, file in files.items()}

    def _mint(self, client: Client) -> None:
        indices = range(SUBMITTER, DEVELOPMENT_ACCOUNTS)
        with ThreadPoolExecutor(len(indices)) as pool:
            list(pool.map(lambda index: client.token.mint(self.address(index), PURSE), indices))

    def _serve_bundles(self) -> str:
        """Start the bundle server and return its address."""
        port = free_port(HOST)
        self.children.start("bundles", [*_command("assay"), "serve", "--port", str(port)], self.home.root)
        return f"http://{HOST}:{port}"

    def _start_parties(self) -> None:
        common = [
            "--rpc",
            self.chain.url,
            "--deployment",
            str(self.home.deployment(self.chain.chain_id)),
        ]
        watch = [*_command("verifier"), "watch", *common, "--port", "0", "--stake", "10"]
        for number, story in enumerate(POSTED, start=1):
            watch += [] if story.accomplice or story.withheld else ["--task", str(number)]
        first, *others = SEATED
        seats = ["--dev-account", str(first)]
        seats += [part for index in others for part in ("--further-account", f"dev:{index}")]
        whistleblower = ["--dev-account", str(VERIFIER), "--whistleblow"]
        # These verifiers are busy: waiting half a second between polls would be a third of their time.
        for name, own in (("seats", seats), ("verifier", whistleblower)):
            self.children.start(name, [*watch, *own], self._home(name), {"ASSAY_POLL": "0.2"})
        for number, story in enumerate(POSTED, start=1):
            account = ["--dev-account", str(self.solver(story)), "--task", str(number)]
            if story.cheat is None:
                command = [*_command("solver"), "run", "--port", "0", "--stake", "1000"]
            else:
                command = [*_adversary(story.cheat), "--port", "0", "--stake", "1000"]
            name = self.process(story)
            self.children.start(name, [*command, *common, *account], self._home(name))
            if story.accuser is not None:
                account = ["--dev-account", str(ACCUSER), "--task", str(number)]
                command = [*_adversary(story.accuser), *common, *account]
                self.children.start(story.accuser, command, self._home(story.accuser))
            if story.accomplice:
                account = ["--dev-account", str(ACCOMPLICE), "--task", str(number)]
                command = [*_adversary("accomplice"), *common, *account]
                self.children.start("accomplice", command, self._home("accomplice"), {"ASSAY_POLL": "0.2"})

    def _post(self, url: str) -> None:
        """Post all tasks one after another, so that their ids are known in advance."""
        signature_of = Relays(
            self.client.deployment.beacon, (self._beacon,), self.client.beacon.is_signed_round
        ).signature
        for prepared in self.prepared.values():
            require_served(terms(prepared, url, {}))
        for story in POSTED:
            own = terms(self.prepared[story.example], url, story.terms)
            if story.silent:
                self._register(SILENT, SILENT_LEVEL, own)
            if story.accomplice:
                self._register(SEAT, SEAT_LEVEL, own)
            if story.outsourced:
                self._register(OUTSOURCER, OUTSOURCER_LEVEL, own)
            if story.stamped:
                self._register(ONE, PAIR_LEVEL, own)
                self._register(OTHER, PAIR_LEVEL, own)
            for index in REFUSED if story.withheld else ():
                self._register(index, REFUSED_LEVEL, own)
            self.tasks[story.letter] = post(self.client, own, signature_of, own.verifiers)
            if story.outsourced:
                self._start_outsourcer(self.tasks[story.letter])

    def _register(self, index: int, level: int, own: Terms) -> None:
        """Register an account that can be drawn for only one task: the one whose terms are `own`. This task
        must be the next one to be posted.

        The account cannot be drawn for earlier tasks, because they were posted before it registered. Its
        offer excludes all later tasks.
        """
        everything, fee = 2**64 - 1, own.seat_fee * 10**9 // own.seat_operations
        offer = Offer(everything, everything, own.seat_lock, fee, own.least_fee, own.seat_period)
        with connect(self.chain.url, account=f"dev:{index}") as client:
            client.fund(client.deployment.parameters.stake_unit << level)
            client.audit.register(level, offer)

    def cast(self, story: Story) -> None:
        """Start a story's late parties, once its seats are drawn.

        In the accomplice's story, the late party is the honest seat, which must not challenge before the
        accomplice. In the other stories, the late parties are the seats, and the account that gets the look
        or the accounts of the jury.
        """
        task = self.tasks[story.letter]
        name = SEAT_NAME if story.accomplice else STAMP_NAME if story.stamped else FED_NAME
        if name in self.children or not self.client.audit.audit(task).drawn_at:
            return
        if story.accomplice:
            self._start_watching(SEAT_NAME, SEAT, task, "1")
            return
        if story.withheld:
            self._cast_refused(task)
            return
        sits = self.client.audit.seat(task, 0).account
        stamp, look = (ONE, OTHER) if sits == self.address(ONE) else (OTHER, ONE)
        self._start_watching(LOOK_NAME, look, task, "0.5")
        self._start_seated(STAMP_NAME, "rubber-stamp", stamp, task)

    def _cast_refused(self, task: int) -> None:
        """Start the first seat, which the cheat serves, and one process for the other seat and the jury."""
        sits = [seat.account for seat in self.client.audit.seats(task)]
        fed, seat = (next(index for index in REFUSED if self.address(index) == account) for account in sits)
        jury = [index for index in REFUSED if index not in (fed, seat)]
        self._start_watching(REFUSED_NAME, seat, task, "0.5", jury)
        self._start_seated(FED_NAME, "fed-seat", fed, task)

    def _start_seated(self, name: str, cheat: str, account: int, task: int) -> None:
        """Start an adversary that holds a seat of a task."""
        command = [*_adversary(cheat), "--rpc", self.chain.url]
        command += ["--deployment", str(self.home.deployment(self.chain.chain_id))]
        command += ["--dev-account", str(account), "--task", str(task)]
        self.children.start(name, command, self._home(name))

    def _start_watching(
        self, name: str, account: int, task: int, poll: str, further: Sequence[int] = ()
    ) -> None:
        """Start a verifier that watches a single task."""
        watch = [*_command("verifier"), "watch", "--rpc", self.chain.url]
        watch += ["--deployment", str(self.home.deployment(self.chain.chain_id))]
        watch += ["--dev-account", str(account), "--task", str(task), "--port", "0"]
        watch += [part for index in further for part in ("--further-account", f"dev:{index}")]
        self.children.start(name, watch, self._home(name), {"ASSAY_POLL": poll})

    def _start_outsourcer(self, task: int) -> None:
        """Start the seat that outsources its digest to a service, which passes the salt on to the verifier."""
        command = [*_adversary("outsourcer"), "--rpc", self.chain.url]
        command += ["--deployment", str(self.home.deployment(self.chain.chain_id))]
        command += [
            "--dev-account",
            str(OUTSOURCER),
            "--task",
            str(task),
            "--service",
            self.endpoint(VERIFIER),
        ]
        self.children.start(OUTSOURCER_NAME, command, self._home(OUTSOURCER_NAME))

    def _all_announced(self) -> bool:
        return all(self.endpoint(self.solver(story)) for story in STORIES)

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            self.children.require_alive()
            if time.monotonic() > deadline:
                raise StageError(f"expected {what} within {READY_SECONDS:.0f} s; see {self._folder / 'logs'}")
            time.sleep(0.3)

    def _home(self, name: str) -> Path:
        return self._folder / "home" / name


def clear(folder: Path) -> None:
    """Empty the folder of an earlier demo, or create a new folder. Raises StageError for any other folder
    that is not empty.
    """
    mark = folder / MARK
    if folder.exists() and any(folder.iterdir()) and not mark.is_file():
        raise StageError(
            f"folder {folder}",
            expected="a new or empty folder, or an earlier demo's",
            got="another",
            remedy="name a new one",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mark.touch()


def _command(name: str) -> list[str]:
    """The module of a console command."""
    return [f"{name}.cli"]


def _adversary(cheat: str) -> list[str]:
    return ["tests.adversaries.__main__", cheat]
