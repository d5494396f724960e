"""The pure parts of `assay watch`: what comes next, what a re-organisation makes void, and curves."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.task_status import GameStatus, JuryStatus, JuryStep, SeatStatus, TaskStatusReport
from assay.watching.curve import MOST_POINTS, Point, shown_metric, sparkline, wanted
from assay.watching.happened import Happened, Told, own
from assay.watching.printing import Printer
from assay.watching.waiting import deadlines, waiting
from protocol.chain.receipts import Event, Log
from protocol.node.output import Output

READ_AT = 10_000


def report(status: str, left: int | None = None, **fields: Any) -> TaskStatusReport:
    empty = {"awaited_round": None, "seats": (), "looks": (), "games": (), "jury": None}
    return cast(TaskStatusReport, SimpleNamespace(status=status, seconds_left=left, **(empty | fields)))


def seat(number: int, left: int | None, account: str | None = "0x1") -> SeatStatus:
    return SeatStatus(number, account, (1,), left is None, caught=False, seconds_left=left)


GAME = GameStatus(3, "0x2", "step", "none", 1, 0, (), 40)
JURY = JuryStatus(1, 4, 3, 0, 0, JuryStep.VOTES, 30)


@pytest.mark.parametrize(
    ("found", "later", "words"),
    [
        (report("bidding", 58), 8, "bidding ends in 50 s"),
        (report("bidding", 58), 59, "bidding is over: anyone may assign the task"),
        (report("training", 600), 0, "the solver must have submitted in 10 min"),
        (report("training", 600), 601, "the solver is late: anyone may end the task, which refunds it"),
        (
            report("submitted", None, awaited_round=7),
            5,
            "round 7 of the beacon, for a draw, is published in 15 s",
        ),
        (report("submitted", None, awaited_round=7), 21, "a draw is due: anyone may execute it"),
        (
            report("submitted", 600, seats=(seat(0, 400), seat(1, None))),
            0,
            "seat 0 must attest in 6 min 40 s",
        ),
        (report("submitted", 600, looks=(seat(32, 9),)), 0, "look 32 must attest in 9 s"),
        # A seat for which nobody was found is not awaited.
        (report("submitted", 600, seats=(seat(0, 9, None),)), 0, "challenges end in 10 min"),
        (
            report("submitted", 600, games=(GAME,), seats=(seat(0, 400),)),
            0,
            "a move in game 3 is due in 40 s",
        ),
        (report("submitted", 600, games=(GAME,), jury=JURY), 0, "the jury's votes are due in 30 s"),
        (report("submitted", 600, games=(GAME,), jury=JURY), 31, "a move in game 3 is due in 9 s"),
        (report("submitted", 600), 601, "nothing is awaited: anyone may settle the task"),
        (report("unpaid", 60), 0, "challenges of the unpaid task end in 1 min"),
        (report("settled"), 0, "it is over"),
    ],
)
def test_what_comes_next(found: TaskStatusReport, later: int, words: str) -> None:
    now = READ_AT + later
    said, left = waiting(
        deadlines(found, READ_AT, READ_AT + 20), found.status, found.awaited_round is not None, now
    )
    assert said == words
    assert (left is None) == (" in " not in words)


def event(name: str, block: int, transaction: str = "0xa", **arguments: Any) -> Event:
    log = Log("0x", (), b"", block, f"hash {block}", transaction, 0)
    return Event("TaskMarket", name, arguments, log)


def test_what_a_re_organisation_takes_back_is_void_unless_it_is_mined_again() -> None:
    bid, assigned, progress = (
        event("BidPlaced", 5, "0x1", task=1, price=9),
        event("Assigned", 7, "0x2", task=1),
        event("Progressed", 8, "0x3", task=1, size=2),
    )
    told = Happened((Told(bid, "a bid"), Told(assigned, "assigned"), Told(progress, "progress")))
    again = [event("Assigned", 9, "0x2", task=1), event("Progressed", 9, "0x3", task=1, size=3)]
    after, void = told.rewound(6, again)
    assert [each.text for each in void] == ["progress"], "the same call with another result is another event"
    assert [(each.text, each.event.log.block) for each in after.told] == [("a bid", 5), ("assigned", 9)]
    assert after.new(again) == again[1:]
    assert told.rewound(8, []) == (told, [])


def test_a_task_has_its_own_events_and_those_of_its_games() -> None:
    mine, other = event("Challenged", 3, task=1, game=4), event("Challenged", 3, task=2, game=5)
    moves = [event("StepSelected", 4, game=4, step=1), event("StepSelected", 4, game=5, step=1)]
    posted = event("StepsPosted", 4, task=1, claim=b"")
    assert own(1, [mine, other, *moves, posted], []) == [mine, moves[0], posted]
    assert own(1, moves, [5]) == [moves[1]]


def test_a_curve_has_the_least_and_the_greatest_at_its_ends() -> None:
    assert sparkline([]) == ""
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert sparkline([8.0, 4.0, 1.0]) == "█▄▁"
    assert sparkline([1.0, math.nan, 2.0]) == "▁×█"
    assert sparkline([math.inf, math.nan]) == "××"
    assert sparkline([float(i) for i in range(1_000)], 8) == "▁▂▃▄▅▆▇█"
    assert len(sparkline([1.0] * 1_000)) == 40


@pytest.mark.parametrize("segments", [1, 7, MOST_POINTS, MOST_POINTS + 1, 1 << 20])
def test_of_a_long_task_some_checkpoints_are_opened_and_the_last(segments: int) -> None:
    numbers = wanted(segments, segments)
    assert numbers[-1] == segments
    assert len(numbers) <= MOST_POINTS + 1
    assert numbers[:-1] == wanted(segments - 1, segments)
    assert wanted(-1, segments) == wanted(0, segments) == []
    if segments <= MOST_POINTS:
        assert numbers == list(range(1, segments + 1))


def test_the_loss_is_shown_before_other_metrics() -> None:
    def shown(values: Mapping[str, float]) -> str | None:
        return shown_metric(Point(1, 4, b"", values))

    assert shown({"accuracy": 1.0, "loss": 2.0}) == "loss"
    assert shown({"accuracy": 1.0}) == "accuracy"
    assert shown({}) is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_last_line_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    printer = Printer(Output("watch", as_json=False))
    printer.state("waiting 2 s")
    printer.state("waiting 1 s")
    printer.line("event", "a bid")
    printer.end()
    assert screen.getvalue() == "\r\x1b[Kwaiting 2 s\r\x1b[Kwaiting 1 s\r\x1b[Ka bid\n"


def test_programs_get_a_line_of_json_each(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(Output("watch", as_json=True))
    printer.state("nobody sees this")
    printer.line("metrics", "  loss nan", metrics={"loss": math.nan}, root=b"\x01")
    shown = capsys.readouterr()
    assert shown.err == "  loss nan\n"
    (line,) = shown.out.splitlines()

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    told = json.loads(line, parse_constant=no_constant)
    data = {"kind": "metrics", "time": None, "text": "loss nan", "metrics": {"loss": "nan"}, "root": "0x01"}
    assert told == {"version": 1, "command": "watch", "data": data}


@pytest.mark.parametrize("terminal", [False, True])
def test_metrics_go_to_callbacks_whoever_looks_on(terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, Mapping[str, float]]] = []
    output = Output("watch", as_json=False)
    printer = Printer(output, terminal, [lambda step, metrics: told.append((step, metrics))])
    printer.points([Point(1, 50, b"r", {"loss": 0.5})])
    assert told == [(50, {"loss": 0.5})]
    assert ("segment 1, step 50: loss 0.5; as committed" in capsys.readouterr().out) is not terminal
