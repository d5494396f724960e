"""The solver's process, killed at every stage and restarted: nothing is lost, nothing is sent twice."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from examples.demo.preloaded import Forked
from protocol.chain.accounts import development_account
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.commitments import BlobStore
from protocol.commitments.checkpoints import load_checkpoint
from tests.chain.solver_stage import Stage, stage, submitted
from tests.forked import run, start
from tests.unit.solver import killing

pytestmark = pytest.mark.chain

SEGMENTS = 12
DAWDLE = partial(killing.dawdle, 0.05)
"""Makes training last for several blocks, so that progress is announced meanwhile."""


class Running:
    """A solver's process and its log."""

    def __init__(self, process: Forked, log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        """The process's log so far."""
        return self._log.read_text()

    def end(self, seconds: float = 90) -> int:
        """Wait until the process ends; returns the exit code."""
        return self.process.wait(seconds)


@contextmanager
def started(scene: Stage, *before: Callable[[], None]) -> Iterator[Running]:
    """Run `solver run --once` as an operator would. If it still runs when the context ends, it is killed
    without a chance to clean up.

    `before` is called first, in the solver's process.
    """
    flags = ["--log-json", "--rpc", scene.devnet.url, "--dev-account", "1", "--port", "0", "--stake", "600"]
    with TemporaryDirectory() as folder:
        log = Path(folder, "solver.log")
        process = start("solver.cli", "run", "--once", *flags, log=log, before=before)
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.wait()


def configured(scene: Stage) -> None:
    """Write settings that have no flag: allowed bundles, the relay, progress after every segment, a short
    poll.
    """
    allowed, relays = json.dumps([scene.bundles.parent.as_uri()]), json.dumps([scene.relay])
    chosen = f"bundles = {allowed}\nrelays = {relays}\nprogress_every = 1\npoll = 0.05\n"
    scene.home.config.write_text(f"[solver]\n{chosen}")


def test_killed_at_every_stage_it_finishes_and_sends_nothing_twice(tmp_path: Path) -> None:
    with stage(tmp_path) as scene:
        configured(scene)
        # A process that starts first may take long to load.
        task = scene.post(segments=SEGMENTS, bidding_period=600)
        solver = development_account(1, scene.devnet.chain_id).address
        points: list[Callable[[TaskView], bool]] = [
            lambda view: view.status is not TaskStatus.BIDDING,
            lambda view: view.size > 0,
            lambda view: view.size > 2 or view.status is not TaskStatus.TRAINING,
            submitted,
        ]
        with started(scene):
            scene.until(task, lambda view: view.bidder != NOBODY, 90)
        scene.end_bidding(task)
        for reached in points:
            with started(scene, DAWDLE):
                scene.until(task, reached, 90)
        with started(scene):
            scene.until_drawn(task)
        scene.attest(task)
        scene.end_challenges(task)
        with started(scene) as last:
            assert last.end() == 0, last.log
        view = scene.submitter.market.task(task)
        assert (view.status, view.size, view.solver) == (TaskStatus.SETTLED, SEGMENTS + 1, solver)
        contracts = scene.submitter.contracts
        events = Follower(scene.devnet.connection, contracts, scene.deployment.block).poll().events
        counts = Counter(event.name for event in events)
        once = ("BidPlaced", "Assigned", "Submitted", "Drawn", "Settled")
        assert {name: counts[name] for name in once} == dict.fromkeys(once, 1)
        sizes = [event.arguments["size"] for event in events if event.name == "Progressed"]
        assert sizes == sorted(set(sizes))
        assert 1 <= len(sizes) <= SEGMENTS


def test_killed_while_it_keeps_a_checkpoint_nothing_is_announced_that_is_not_there(tmp_path: Path) -> None:
    """While training runs ahead, the solver is killed four times while it stores a checkpoint: before and
    after it writes a file, and before and after it writes a database row. After each kill, all rows are
    complete. After the last restart, the solver finishes the task.
    """
    with stage(tmp_path) as scene:
        configured(scene)
        # A process that starts first may take long to load.
        task = scene.post(segments=SEGMENTS, bidding_period=600)
        for moment, number in (("rename", 14), ("row", 3), ("put", 8), ("known", 2)):
            kill = partial(killing.install, moment, number)
            with started(scene, kill) as solver:
                if scene.submitter.market.task(task).status is TaskStatus.BIDDING:
                    scene.until(task, lambda view: view.bidder != NOBODY, 90)
                    scene.end_bidding(task)
                assert solver.end() == -signal.SIGKILL
            (file,) = scene.home.root.rglob("solver.sqlite")
            with closing(sqlite3.connect(file)) as database:
                rows = database.execute(
                    "SELECT number, manifest, root FROM checkpoints ORDER BY number"
                ).fetchall()
                ((sent,),) = database.execute("SELECT coalesce(max(sent), 0) FROM tasks").fetchall()
            assert [row[0] for row in rows] == list(range(len(rows)))
            assert scene.submitter.market.task(task).size <= sent <= len(rows)
            for _, manifest, root in rows:
                load_checkpoint(
                    BlobStore(file.parent / "tasks" / str(task) / "blobs"), manifest, state_root=root
                )
        assert len(rows) >= 4  # two of the second process, two of the last
        with started(scene):
            view = scene.until(task, submitted, 90)
        assert view.size == SEGMENTS + 1


def test_asked_to_stop_it_stops_and_says_what_is_at_stake(tmp_path: Path) -> None:
    with stage(tmp_path) as scene:
        configured(scene)
        with started(scene) as solver:
            task = scene.post(bidding_period=600)
            scene.until(task, lambda view: view.bidder != NOBODY, 90)
            scene.end_bidding(task)
            scene.until(task, submitted)
            solver.process.terminate()
            assert solver.end(30) == 130, solver.log
            last = json.loads(solver.log.strip().splitlines()[-1])
        assert (last["event"], last["tasks_at_stake"]) == ("stopped", [task])


def test_a_withdrawal_is_refused_while_a_node_sends_from_the_account(tmp_path: Path) -> None:
    """Otherwise the withdrawal would take tokens that the node has brought in for stakes or bonds."""
    with stage(tmp_path) as scene:
        configured(scene)
        flags = ["--rpc", scene.devnet.url, "--dev-account", "1"]
        with started(scene):
            scene.until(scene.post(bidding_period=600), lambda view: view.bidder != NOBODY, 90)
            for party in ("solver", "verifier"):
                done = run(f"{party}.cli", "withdraw", *flags)
                assert done.returncode == 1, done.stderr
                assert "expected to be the only process that sends from it" in done.stderr
                assert "stop the other process" in done.stderr


WRONG = (
    (["--rpc", "http://127.0.0.1:1"], 1, "expected an Ethereum node at http://127.0.0.1:1"),
    (["--account", "nobody"], 2, "a key file"),
    (["--stake", "-1"], 2, "setting stake from flag"),
    (
        ["--stake", "1000000000"],
        2,
        "send tokens to it, on a development chain by `assay fund`, or lower --stake",
    ),
    (["--account", "a", "--dev-account", "1"], 2, "leave one out"),
)


def test_wrong_input_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    with stage(tmp_path) as scene:
        for flags, code, words in WRONG:
            given = ["--rpc", scene.devnet.url, "--dev-account", "1"][: 2 if "--account" in flags else 4]
            done = run("solver.cli", "run", "--port", "0", *given, *flags)
            assert done.returncode == code, done.stderr
            assert done.stdout == ""
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            assert len(errors) == 1
            assert words in errors[0]
            assert "Traceback" not in done.stderr


def test_free_tokens_are_withdrawn_when_asked(tmp_path: Path) -> None:
    with stage(tmp_path) as scene:
        with scene.client("dev:1") as client:
            client.fund(7 * TOKEN)
            before = client.token.balance_of(client.address)
        command = ["withdraw", "--json", "--rpc", scene.devnet.url, "--dev-account", "1"]
        for flags, units, left in ((["--dry-run"], 7, 7), ([], 7, 0), ([], 0, 0)):
            done = run("solver.cli", *command, *flags)
            assert done.returncode == 0, done.stderr
            data = json.loads(done.stdout)["data"]
            assert data["units"] == str(units * TOKEN)
            assert (data["transaction"] is None) == (left == units)
            assert scene.submitter.vault.free(client.address) == left * TOKEN
        assert scene.submitter.token.balance_of(client.address) == before + 7 * TOKEN
