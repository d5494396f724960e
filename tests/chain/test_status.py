"""`assay status` on a chain: names, deadlines in words, outcomes of tasks, and `--watch`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay import cli, showing
from assay.names import task_name
from assay.status import open_tasks
from protocol.chain.market import Market
from protocol.chain.parameters import TOKEN
from protocol.chain.transport import Asked, Transport
from protocol.node.home import Home
from protocol.node.stopping import Stop
from tests.chain.solver_stage import Stage

pytestmark = pytest.mark.chain


@pytest.fixture
def command(scene: Stage, tmp_path: Path) -> Callable[..., str]:
    """Runs `assay status` on the scene's deployment and returns its output."""
    deployment = tmp_path / "deployment.json"
    deployment.write_text(scene.deployment.model_dump_json())
    given = ["--rpc", scene.devnet.url, "--deployment", str(deployment)]

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli.app, ["status", *arguments, *given])
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    return run


def test_a_task_is_told_in_words_until_it_is_refunded(scene: Stage, command: Callable[..., str]) -> None:
    task = scene.post()
    terms = scene.submitter.market.terms(task)
    told = command()
    assert f"task {task}: bidding, ends in " in told
    assert "no bid yet for 100 tokens" in told
    assert str(100 * TOKEN) not in told
    shutil.copytree(scene.bundles, Home.find().bundles / terms.bundle_hash.hex())
    assert f"task {task} (tiny): bidding" in command()
    scene.skip_to(scene.submitter.market.task(task).bids_until + 60)
    told = command(str(task))
    assert "bidding, ended " in told
    assert " ago" in told
    assert "no bid for 100 tokens" in told
    scene.submitter.market.assign(task)
    for told in (command(str(task)), command("--past")):
        assert f"task {task} (tiny): refunded, nobody has bid" in told
        assert "no bid yet" not in told
    assert command() == "1 task is over: `assay status --past` shows it too\n"
    data = json.loads(command(str(task), "--json"))["data"]
    assert [(one["name"], one["status"], one["price"]) for one in data] == [("tiny", "refunded", None)]


def test_a_solver_that_is_late_is_said_to_be(scene: Stage, command: Callable[..., str]) -> None:
    task = scene.post()
    rival = scene.client("dev:4")
    rival.fund(1_000 * TOKEN)
    rival.market.bid(task, 45 * TOKEN)
    scene.end_bidding(task)
    rival.market.assign(task)
    assert "training, due in " in command(str(task))
    assert "price 45 of 100 tokens" in command(str(task))
    scene.skip_to(scene.submitter.market.task(task).train_until)
    assert "training, was due " in command(str(task))
    rival.market.expire(task)
    assert f"task {task}: refunded, the solver missed its deadline; price 45 of 100 tokens" in command(
        "--past"
    )
    rival.close()


def test_a_task_is_watched_until_it_is_over(
    scene: Stage, command: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = scene.post()
    steps: list[Callable[[], object]] = [
        lambda: scene.skip_to(scene.submitter.market.task(task).bids_until),
        lambda: None,
        lambda: scene.submitter.market.assign(task),
    ]

    class Waiting(Stop):
        """Runs the next of `steps` instead of waiting between two looks."""

        def on_signals(self) -> None:
            pass

        def wait(self, seconds: float) -> bool:
            assert seconds <= showing.LONGEST_PAUSE
            steps.pop(0)()
            return False

    monkeypatch.setattr(showing, "Stop", Waiting)
    told = command(str(task), "--watch")
    assert not steps
    assert told.index("bidding, ends in") < told.index("bidding, ended") < told.index("refunded, nobody")


def test_a_watch_of_all_tasks_ends_when_it_is_asked_to(
    scene: Stage, command: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.post()
    looks = iter([False, True])
    monkeypatch.setattr(Stop, "on_signals", lambda _stop: None)
    monkeypatch.setattr(Stop, "wait", lambda _stop, _seconds: next(looks))
    assert command("--watch").count("task 1: bidding") in (1, 2)


def test_a_thousand_tasks_take_few_requests(scene: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request holds a hundred calls, so a thousand tasks take ten requests. At most five others are made."""
    asked: list[int] = []
    ask, ask_all = Transport.ask, Transport.ask_all

    def one(transport: Transport, method: str, parameters: Sequence[object]) -> object:
        asked.append(1)
        return ask(transport, method, parameters)

    def many(transport: Transport, questions: Sequence[Asked]) -> object:
        asked.append(len(questions))
        return ask_all(transport, questions)

    monkeypatch.setattr(Market, "tasks", lambda _market: 1_000)
    monkeypatch.setattr(Transport, "ask", one)
    monkeypatch.setattr(Transport, "ask_all", many)
    assert open_tasks(scene.submitter)[1] == 1_000
    assert sum(asked) >= 1_000
    assert len(asked) <= 15


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3}', '{"name": "\\u001b[31m"}', "[" * 100_000])
def test_a_damaged_manifest_has_no_name(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "bundles" / ("00" * 32)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(text)
    assert task_name(Home(tmp_path), bytes(32)) is None
    assert task_name(Home(tmp_path), b"\x01" * 32) is None
