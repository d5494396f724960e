"""`assay watch` follows an honest task to its checked result and a false one to its conviction, even if the
chain's node or the solver's server fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import Response
from safetensors.torch import load_file

from assay.status import report_of
from assay.watching import following
from assay.watching.command import Watch
from assay.watching.following import Following
from assay.watching.printing import Printer
from examples.demo.preloaded import Forked
from protocol.chain.client import Client
from protocol.chain.errors import RpcUnavailable
from protocol.chain.events import Follower
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.tasks.bundles import Limits
from solver.catalog import Catalog
from solver.limits import App
from solver.run_store import RunStore
from solver.server import application
from solver.strategy import Strategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.rpc_proxy.reorganising import reorganise
from tests.chain.solver_stage import Solver, Stage
from tests.chain.test_assay_commands import Submitter
from tests.chain.test_verifier_watch import Watcher, until_registered, wait
from tests.forked import start

pytestmark = pytest.mark.chain


class Watching:
    """`assay watch TASK --json` as a process, and its output."""

    def __init__(self, submitter: Submitter, task: int, folder: Path, *options: str) -> None:
        name = f"watch-{task}-{len(options)}"
        self._log, self.said = folder / f"{name}.jsonl", folder / f"{name}.txt"
        self.process: Forked = start(
            "assay.cli",
            *("watch", str(task), "--json", *options),
            log=self._log,
            errors=self.said,
            environment=submitter.environment,
        )

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The data of all complete output lines of a kind."""
        lines = self._log.read_text().splitlines(keepends=True)
        data = [json.loads(line)["data"] for line in lines if line.endswith("\n")]
        return [each for each in data if each["kind"] == kind]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [each for each in self.told("event") if each["event"] == name]

    def until(self, what: Callable[[], object]) -> None:
        """Wait until `what` holds. Fails if the process ends first, or after 90 s."""
        wait(lambda: bool(what()) or self.process.poll() is not None, 90)
        assert what(), self.said.read_text()

    def ended(self, seconds: float = 90) -> int:
        return self.process.wait(seconds)


@pytest.fixture
def submitter(scene: Stage, tmp_path: Path) -> Iterator[Submitter]:
    made = Submitter(scene, tmp_path)
    yield made
    made.close()


def posted(submitter: Submitter) -> int:
    """Start the bundle server and post the submitter's task; returns the task's id."""
    told, _ = submitter.run(
        "submit", str(submitter.file), "--yes", "--bundles-url", submitter.serve(), "--json"
    )
    return int(told["task"])


def test_a_true_task_is_followed_to_its_checked_result(
    scene: Stage, submitter: Submitter, tmp_path: Path
) -> None:
    task, output = posted(submitter), tmp_path / "result"
    watching = Watching(submitter, task, tmp_path, "--output", str(output))
    watching.until(lambda: watching.told("untaken"))
    solver = Solver(scene, once=False)
    again = None
    try:
        watching.until(lambda: watching.events("BidPlaced"))
        scene.end_bidding(task)
        watching.until(lambda: watching.told("result"))
        handed_in = load_file(output / "state.safetensors")
        scene.until_drawn(task)
        scene.attest(task)
        watching.until(lambda: watching.events("Attested"))
        scene.end_challenges(task)
        assert watching.ended() == ExitCode.FINE, watching.said.read_text()
        # A watch that starts later reports everything and ends at once; without --output it writes no files.
        again = Watching(submitter, task, tmp_path, "--no-evaluate")
        assert again.ended() == ExitCode.FINE, again.said.read_text()
    finally:
        watching.process.kill()
        if again is not None:
            again.process.kill()
        solver.close()
    assert watching.told("untaken")[0]["reason"].startswith(("a solver with default", "its ", "a false"))
    (which,) = watching.told("task")
    assert which["name"] == "line"
    assert which["text"].startswith(f"task {task} (line): bundle ")
    assert which["text"].endswith(f", posted by {which['submitter']}")
    (first,) = watching.told("now")
    assert first["text"].startswith(f"task {task} is bidding · bidding ends in ")
    names = [each["event"] for each in watching.told("event")]
    for name in (
        "Posted",
        "BidPlaced",
        "Assigned",
        "Submitted",
        "DrawAsked",
        "Seated",
        "Attested",
        "Settled",
    ):
        assert names.count(name) == 1, names
    (bid,) = watching.events("BidPlaced")
    assert bid["text"].startswith("solver 0x")
    assert " bids 45 · bidding ends in " in bid["text"]
    points = watching.told("metrics")
    assert [(each["segment"], each["step"], each["verified"]) for each in points] == [
        (1, 3, True),
        (2, 6, True),
    ]
    (result,) = watching.told("result")
    assert result["verified"]
    assert result["metrics"]["loss"] == points[-1]["metrics"]["loss"]
    assert points[-1]["metrics"]["loss"] == float(handed_in["metric.loss"])
    assert (output / "metrics.csv").is_file()
    (end,) = watching.told("end")
    assert end["status"] == "settled"
    assert [each["event"] for each in again.told("event")][: len(names)] == names
    assert [each["metrics"] for each in again.told("metrics")] == [each["metrics"] for each in points]


def test_a_false_task_is_followed_through_its_game(
    scene: Stage, submitter: Submitter, tmp_path: Path
) -> None:
    scene.submitter.audit.resign()
    watcher = Watcher(scene, whistleblow=True)
    until_registered(scene)
    solver = Solver(scene, Strategy(executor=moves_a_weight_far))
    watching = None
    try:
        task = scene.post()
        watching = Watching(submitter, task, tmp_path)
        watching.until(lambda: watching.events("BidPlaced"))
        scene.end_bidding(task)
        scene.until_drawn(task)
        assert watching.ended() == ExitCode.FRAUD, watching.said.read_text()
    finally:
        if watching is not None:
            watching.process.kill()
        watcher.close()
        solver.close()
    texts = [each["text"] for each in watching.told("event")]
    assert any(" challenges" in text for text in texts)
    assert any(text.startswith("about segment 2") for text in texts)
    assert any(text.startswith("step 2") for text in texts)
    # The text has names if the bundle, which is fetched for the losses, was already in the home folder.
    (judged,) = [text for text in texts if text.startswith("JUDGED: ")]
    forms = ("step, instruction 4 (add), element [31]: claimed ", "instruction 4, element 31: claimed bits ")
    assert judged.removeprefix("JUDGED: ").startswith(forms)
    assert any(text.startswith("SLASHED: stake 500") for text in texts)
    assert watching.told("end")[0]["status"] == "slashed"
    assert "the solver was convicted" in watching.told("end")[0]["text"]


def lying(catalog: Catalog) -> App:
    """The solver's server, but every loss that it serves is 0."""
    lies, honest = FastAPI(), application(catalog)

    def told(task: int, number: int, tensors: Callable[[RunStore], Iterable[int]]) -> Response:
        run_store = catalog.run_store(task)
        assert run_store is not None
        pieces = []
        for k in tensors(run_store):
            data = run_store.tensor(number, k)
            pieces.append(bytes(len(data)) if run_store.program.state[k] == "metric.loss" else data)
        return Response(b"".join(pieces), media_type="application/octet-stream")

    @lies.get("/tasks/{task}/checkpoints/{number}/tensors/{tensor}")
    def tensor(task: int, number: int, tensor: int) -> Response:
        return told(task, number, lambda _: [tensor])

    @lies.get("/tasks/{task}/checkpoints/{number}/groups/{group}")
    def group(task: int, number: int, group: int) -> Response:
        return told(task, number, lambda run_store: run_store.groups[group])

    lies.mount("/", honest)
    return lies


def test_a_loss_that_was_not_committed_is_not_shown(
    scene: Stage, submitter: Submitter, tmp_path: Path
) -> None:
    task = posted(submitter)
    solver = Solver(scene, Strategy(app=lying), once=False)
    watching = Watching(submitter, task, tmp_path)
    try:
        scene.end_bidding(task)
        watching.until(lambda: watching.told("metrics"))
        watching.until(lambda: watching.told("result"))
    finally:
        watching.process.kill()
        solver.close()
    assert not any(each["verified"] for each in (*watching.told("metrics"), *watching.told("result")))
    assert "metrics are not shown: metric loss of checkpoint 1" in watching.told("metrics")[0]["text"]
    assert "no result yet" in watching.told("result")[0]["text"]


# ---------------------------------------------------------------------- chains that fail, without processes


def only_blocks_of_transactions(scene: Stage) -> None:
    """Let anvil mine blocks only for transactions, no longer on a timer."""
    scene.devnet.connection.request("evm_setIntervalMining", 0)
    scene.devnet.connection.request("evm_setAutomine", True)


@pytest.fixture
def bidder(scene: Stage) -> Iterator[Client]:
    client = scene.client("dev:1")
    client.fund(client.token.balance_of(client.address))
    yield client
    client.close()


def test_what_a_re_organisation_takes_back_is_told(scene: Stage, bidder: Client, tmp_path: Path) -> None:
    only_blocks_of_transactions(scene)
    task = scene.post()
    found = Following(scene.submitter, Home(tmp_path), task)
    first = found.look()
    assert first is not None
    assert [line.event.name for line in first.lines] == ["Posted"]
    assert found.look() is None
    bidder.market.bid(task, 10**18)
    news = found.look()
    assert news is not None
    assert found.standing is not None
    assert [line.text.partition(" bids ")[2] for line in news.lines] == ["1"]
    assert found.standing.view.bidder == bidder.address
    depth = scene.submitter.connection.block().number - news.lines[0].event.log.block + 1
    reorganise(
        lambda method, arguments: {"result": scene.devnet.connection.request(method, *arguments)}, depth
    )
    news = found.look()
    assert news is not None
    assert news.rewound is not None
    assert [told.event.name for told in news.void] == ["BidPlaced"]
    assert not news.lines
    assert int(found.standing.view.bidder, 16) == 0


def test_a_look_that_failed_is_told_by_the_next(
    scene: Stage, bidder: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look reads its events and then fails. The next look tells these events, although the chain's follower
    does not return them a second time.
    """
    task = scene.post()
    found = Following(scene.submitter, Home(tmp_path), task)
    found.look()
    bidder.market.bid(task, 10**18)
    real = report_of

    def out_of_reach(*_arguments: Any) -> Any:
        raise RpcUnavailable("http://127.0.0.1:1", ConnectionError())

    monkeypatch.setattr(following, "report_of", out_of_reach)
    for _ in range(2):
        with pytest.raises(RpcUnavailable):
            found.look()
    monkeypatch.setattr(following, "report_of", real)
    news = found.look()
    assert news is not None
    assert [line.event.name for line in news.lines] == ["BidPlaced"]


def test_nothing_new_costs_one_question_and_a_new_block_its_events(
    scene: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_blocks_of_transactions(scene)
    task = scene.post()
    found = Following(scene.submitter, Home(tmp_path), task)
    found.look()
    connection, asked = scene.submitter.connection, list[str]()
    real = connection._nodes.ask

    def ask(query: Any, *arguments: Any) -> Any:
        asked.append(query.method)
        return real(query, *arguments)

    monkeypatch.setattr(connection._nodes, "ask", ask)
    assert found.look() is None
    assert asked == ["eth_getBlockByNumber"]
    asked.clear()
    scene.devnet.mine(1)
    news = found.look()
    assert news is not None
    assert not news.lines
    assert sorted(asked) == ["eth_getBlockByNumber", "eth_getLogs"]


def test_a_node_that_does_not_answer_is_asked_again(
    scene: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node is asked until it answers. The answer is that the task is over, because the submitter has
    cancelled it.
    """
    task = scene.post()
    output = Output("watch", as_json=False)
    home, limits = Home(tmp_path), Limits()
    watch = Watch(scene.submitter, home, limits, output, Printer(output), task, pace=0.02)
    real, failures = Follower.poll, [3]

    def poll(self: Follower, upto: int | None = None) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise RpcUnavailable("http://127.0.0.1:1", ConnectionError())
        return real(self, upto)

    monkeypatch.setattr(Follower, "poll", poll)
    scene.submitter.market.cancel(task)
    assert watch.run() == ExitCode.HOPELESS
    said = capsys.readouterr().out
    assert said.count("asking again and again") == 1
    assert said.count("answers again") == 1
    assert "REFUNDED: " in said
    assert f"task {task} is over, without a bid" in said
    assert scene.submitter.market.task(task).status is TaskStatus.REFUNDED
