"""`assay watch` goes on if a result cannot be written or evaluated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay import proof_files, writing
from assay.errors import SourceError
from assay.watching import command
from assay.watching.beside import Beside
from assay.watching.command import RESULT, Watch
from assay.watching.following import News
from assay.watching.printing import Printer
from protocol.chain.blocks import Block
from protocol.chain.errors import RpcUnavailable
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.tasks.bundles import Limits

ROOT = b"\1" * 32


def standing(status: TaskStatus) -> Any:
    view = SimpleNamespace(status=status, result=ROOT, bidder="0x1", bids_until=0)
    report = SimpleNamespace(status=status.name.lower())
    return SimpleNamespace(view=view, report=report, waits=lambda _now: ("the end", None))


def test_an_error_of_writing_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node fails while the result's proof is made. Then the solver is convicted."""
    written: list[object] = []

    class Following:
        def __init__(self, *_arguments: object) -> None:
            self.terms = SimpleNamespace(bundle_hash=ROOT)
            self.known = SimpleNamespace(terms=self.terms, submitter="0x2")
            self.standing = standing(TaskStatus.SUBMITTED)

        def look(self) -> News:
            if written:
                self.standing = standing(TaskStatus.SLASHED)
            return News(Block(1, "0x1", "0x0", 10, 0, 0), None, [], [])

    def write(*arguments: object, **_options: object) -> dict[str, object]:
        written.append(arguments)
        raise RpcUnavailable("http://127.0.0.1:1", ConnectionError())

    losses = SimpleNamespace(missing=lambda _view: [], curve=lambda: "")
    monkeypatch.setattr(command, "Following", Following)
    monkeypatch.setattr(command, "Losses", lambda *_arguments: losses)
    monkeypatch.setattr(command, "write", write)
    fetched = SimpleNamespace(root=ROOT, final=False, metrics={})
    monkeypatch.setattr(command, "fetch", lambda *_arguments: fetched)
    client: Any = SimpleNamespace(is_over_for_good=lambda _task: True)
    output = Output("watch", as_json=False)
    watch = Watch(client, Home(tmp_path), Limits(), output, Printer(output), 1, tmp_path, pace=0.02)
    assert watch.run() is ExitCode.FRAUD
    assert len(written) == 1
    assert watch.result is None
    assert watch._beside.failures(RESULT) == 1, "it is fetched again"
    assert "no result yet: " in capsys.readouterr().out


def test_work_whose_result_is_of_no_use_has_failed() -> None:
    beside = Beside()
    for number in range(1, 4):
        beside.begin(RESULT, lambda: 1)
        assert beside.wait(60.0) is not None
        beside.spoil(RESULT)
        assert beside.failures(RESULT) == number
        assert not beside.may_begin(RESULT)
        beside.hurry(RESULT)
    beside.begin(RESULT, lambda: 1)
    assert beside.wait(60.0) is not None
    assert beside.failures(RESULT) == 0


@pytest.mark.parametrize("lenient", [True, False])
def test_an_error_of_the_evaluation_is_printed_or_raised(
    lenient: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluated(*_arguments: object) -> dict[str, float]:
        raise SourceError("task.py raises ValueError")

    monkeypatch.setattr(writing, "_evaluated", evaluated)
    monkeypatch.setattr(writing, "save", lambda *_arguments: tmp_path / "state")
    monkeypatch.setattr(writing, "save_history", lambda *_arguments: None)
    monkeypatch.setattr(proof_files, "proof_of", lambda *_arguments: SimpleNamespace(segment_roots=()))
    monkeypatch.setattr(proof_files, "save", lambda *_arguments: tmp_path / "proof")
    found: Any = SimpleNamespace(task=1, metrics={"loss": 0.5}, final=True, state={})
    output = Output("watch", as_json=False)
    stub: Any = None
    arguments = stub, stub, output, found, tmp_path, tmp_path / "task.toml"
    if not lenient:
        with pytest.raises(SourceError):
            writing.write(*arguments)
        return
    assert writing.write(*arguments, lenient=True)["metrics"] == {"loss": 0.5}
    assert "the result was not evaluated: task.py raises ValueError" in capsys.readouterr().out
