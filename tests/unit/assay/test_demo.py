"""The demo's pure parts: what counts as a failure, how numbers are shown, and which folder it may empty."""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from examples.demo.children import Children
from examples.demo.command import costs
from examples.demo.errors import StageError
from examples.demo.event_lines import EventLines
from examples.demo.ledger import Act, Ledger
from examples.demo.play import WHOLE, failures
from examples.demo.stage import MARK, clear
from examples.demo.stories import POSTED, STORIES
from protocol.chain.receipts import Event, Log
from protocol.dispute.names import bits, number, position
from protocol.node.words import exact
from protocol.numerics.types import DType
from protocol.program.types import TensorType

JUDGED = {"computed_bits": "0x00", "verdict": "solver_false"}


def good() -> dict[str, Any]:
    runs = []
    for story in STORIES:
        run: dict[str, Any] = {"story": story.letter, "verdict": story.verdict, "metrics": {"loss": 0.1}}
        if story.judged:
            run |= {"game": JUDGED, "transactions": 8, "gas": {"judge": 300_000, "total": 1_300_000}}
        if story.refused:
            run["refusal"] = "error: LeafNotInTree"
        if story.silent:
            run["silent"] = {"seat": 0, "penalty": "2.1"}
        if story.outsourced:
            run["informed_by"] = "the verifier"
        if story.stamped:
            run["caught"] = {"accused": {"step": 3, "tensor": 0}, "paid": "15"}
        if story.withheld:
            run["withheld"] = {"item": 1, "yes": 0, "no": 3}
        if story.accomplice:
            run |= {"convicted_by": "the accomplice", "seat": {"ended": WHOLE[0]}}
        if story.accuser:
            game = {"verdict": "challenger_silent"}
            run["accusation"] = {"game": game, "transactions": 8, "gas": {"total": 1_000_000}}
        runs.append(run)
    return {"runs": runs}


def test_a_demo_in_which_all_ends_as_it_must_has_no_failures() -> None:
    assert failures(good()) == []


@pytest.mark.parametrize(
    ("story", "field", "value"),
    [
        ("a", "verdict", "void"),
        ("a", "metrics", None),
        ("b", "verdict", None),
        ("d", "game", {"verdict": "solver_silent"}),
        ("e", "refusal", None),
        ("f", "verdict", "settled"),
        ("g", "accusation", None),
        ("g", "accusation", {"game": {"verdict": "solver_false"}}),
        ("l", "silent", None),
        ("l", "verdict", "void"),
        ("m", "convicted_by", "seat 0"),
        ("n", "informed_by", None),
        ("n", "informed_by", "verifier 3"),
        ("n", "verdict", "void"),
        ("m", "seat", {"ended": "lost"}),
        ("o", "caught", None),
        ("o", "caught", {"paid": "15"}),
        ("p", "withheld", None),
        ("p", "withheld", {"item": 1, "yes": 0, "no": 1}),
        ("p", "verdict", "settled"),
    ],
)
def test_every_other_end_is_a_failure_of_its_story(story: str, field: str, value: object) -> None:
    report = deepcopy(good())
    run = next(run for run in report["runs"] if run["story"] == story)
    if value is None and field != "verdict":
        del run[field]
    else:
        run[field] = value
    (wrong,) = failures(report)
    assert wrong.startswith(f"({story}) ")


def test_costs_are_told_for_every_game() -> None:
    lines = list(costs(good()))
    assert [line[:3] for line in lines] == [f"({letter})" for letter in "bcdfgijkm"]
    assert "1,300,000 gas, 300,000 of it" in lines[0]
    assert lines[4].endswith("1,000,000 gas")


def test_every_story_is_posted_once() -> None:
    assert sorted(story.letter for story in POSTED) == list("abcdefghijklmnop")


def test_numbers_are_shown_as_their_type_reads_them() -> None:
    f32, i64 = TensorType(DType.F32, (64, 10)), TensorType(DType.I64, ())
    assert position(f32, 377) == [37, 7]
    assert position(i64, 0) == []
    assert (bits(f32, 0x3F800001), number(f32, 0x3F800001)) == ("0x3f800001", "1.00000012")
    assert (bits(i64, 2**64 - 5), number(i64, 2**64 - 5)) == ("0xfffffffffffffffb", "-5")
    assert (bits(TensorType(DType.BOOL, ()), 1), number(TensorType(DType.BOOL, ()), 1)) == ("0x01", "1")


def test_tokens_are_exact() -> None:
    assert exact(10**17 + 1) == "0.100000000000000001"
    assert exact(90 * 10**18) == "90"


def test_what_a_void_task_pays_is_told() -> None:
    arguments = {"task": 7, "refund": 30 * 10**18, "paid": 10**18}
    event = Event("TaskMarket", "Voided", arguments, cast("Log", None))
    act = Act("0x", "0x", "voidTask", {}, 0, 1, 5, (event,))
    (line,) = EventLines(cast("Ledger", None), {}, {}).lines(act)
    assert (line.time, line.task) == (5, 7)
    assert line.text == "VOID: 30 to the submitter, the solver is paid 1"


def test_only_a_folder_of_an_earlier_demo_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    clear(folder)
    (folder / "report.json").write_text("{}")
    clear(folder)
    assert [path.name for path in folder.iterdir()] == [MARK]
    (folder / MARK).unlink()
    kept = folder / "thesis.tex"
    kept.write_text("years of work")
    with pytest.raises(StageError, match="name a new one"):
        clear(folder)
    assert kept.read_text() == "years of work"


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_may_finish_ends_with_exit_code_0(tmp_path: Path, code: int) -> None:
    with Children(tmp_path / "logs", {}, tmp_path) as children:
        children.start("one", [sys.executable, "-c", f"raise SystemExit({code})"], tmp_path / "home").wait()
        children.require_alive({"one"})
        with pytest.raises(StageError, match=f"exit code {code}"):
            children.require_alive()
        if code == 0:
            children.require_alive((), {"one"})
        else:
            with pytest.raises(StageError, match="exit code 3"):
                children.require_alive((), {"one"})
