"""`assay plan` on a real task: its text, its JSON, and a check that the plan can be carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.errors import PlanError
from assay.options import context_of
from assay.planning import Choices, plan
from assay.splitting import split
from protocol.lanes import ScheduleError
from protocol.tasks.usual_solver import COST_PER_HOUR, KWH_PRICE, LATE_CHANCE, MARGIN, WATTS
from tests.toolchain.project import REPOSITORY

DIGITS = REPOSITORY / "examples" / "digits.toml"


def choices(
    lanes: str = "2,3",
    links: str = "100",
    speeds: str = "1",
    share: float = 0.1,
    everything: bool = False,
) -> Choices:
    return Choices(lanes, links, speeds, False, 0.0, share, everything)


def test_a_plan_is_said_and_can_be_carried_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(context_of("plan", tmp_path / "home", True), DIGITS, choices())
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["command"], told["version"]) == ("plan", 1)
    data = told["data"]
    best = data["recommended"]
    assert data["within_share"]
    within = [one for one in data["schedules"] if one["share"] <= 0.1]
    assert best["seconds"] == min(one["seconds"] for one in within)
    assert data["alone_seconds"] == pytest.approx(400 * data["step_seconds"])
    assert best["received_bytes"] == best["rounds"] * (best["lanes"] - 1) * best["message_bytes"]
    hourly = float(COST_PER_HOUR) + WATTS / 1000 * float(KWH_PRICE)
    priced = hourly * best["lane_hours"] / (1 - LATE_CHANCE) * (1 + MARGIN)
    assert int(best["cost"]) / 1e18 == pytest.approx(priced)
    lines = said.err.splitlines()
    heads = next(k for k, line in enumerate(lines) if line.split()[:1] == ["lanes"])
    first = lines[heads + 1].split()
    assert first[:3] == [str(best["lanes"]), str(best["inner_steps"]), best["density"]]
    assert any(line.startswith("recommended: ") for line in lines)
    assert any(
        "reach the loss of one machine that makes all of them depends on the model" in line for line in lines
    )
    assert any("at most 20 steps a round at 1/8 or denser, 5 below" in line for line in lines)
    assert not list((tmp_path / "home" / "plans").iterdir()), "nothing is left of what was measured"
    words = lines[-1].removeprefix("next: `assay split ").rstrip("`").split()
    assert words[1:] == [
        *("--lanes", str(best["lanes"]), "--density", best["density"]),
        *(
            "--inner-steps",
            str(best["inner_steps"]),
            "--steps",
            str(best["lane_steps"]),
            "--output",
            "FOLDER",
        ),
    ]
    split(
        context_of("split", tmp_path / "home", False),
        DIGITS,
        tmp_path / "job",
        best["lanes"],
        best["density"],
        best["inner_steps"],
        1.0,
        0,
        best["lane_steps"],
    )
    job = json.loads((tmp_path / "job" / "job.json").read_text())
    assert (job["rounds"], job["width"]) == (best["rounds"], best["lanes"])


def test_where_communication_takes_too_much_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(
        context_of("plan", tmp_path, False),
        DIGITS,
        choices(lanes="2", links="0.00001", everything=True, share=0.001),
    )
    lines = capsys.readouterr().out.splitlines()
    assert any("in no schedule communication takes at most 0.1 % of the time" in line for line in lines)
    assert any(line.startswith("what ends first: 2 lanes") for line in lines)
    assert "note: one machine alone ends earlier" in lines
    assert not any("study" in line for line in lines)


def test_options_are_read_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="widths"):
        plan(context_of("plan", tmp_path, False), tmp_path / "none.toml", choices(lanes="1"))
    with pytest.raises(ScheduleError, match="links"):
        plan(context_of("plan", tmp_path, False), tmp_path / "none.toml", choices(links="1,2"))
    with pytest.raises(ScheduleError, match="speeds"):
        plan(context_of("plan", tmp_path, False), tmp_path / "none.toml", choices(speeds="-1"))


def test_a_lanes_steps_are_whole_rounds(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="a number that divides the 7 steps of a lane, got 5"):
        split(context_of("split", tmp_path, False), DIGITS, tmp_path / "job", 2, "1/8", 5, 1.0, 0, 7)
