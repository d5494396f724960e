"""`assay split`: the job made from a task file, and refused task files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from assay import source, splitting
from assay.commands import Context
from assay.errors import NotMade, PlanError
from protocol.exchange.jobs import load_job
from protocol.exchange.members import Members
from tests.forked import run

GPT = "examples/gpt.toml"


def split(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = run("assay.cli", "split", GPT, "--output", str(folder / "job"), "--home", str(folder), *arguments)
    return done.returncode, done.stdout, done.stderr


def test_a_task_becomes_a_job(tmp_path: Path) -> None:
    code, output, errors = split(tmp_path, "--lanes", "3", "--most-exponent", "-4", "--json")
    assert code == 0, errors
    job = load_job(tmp_path / "job")
    assert (job.lanes.width, job.lanes.inner_steps, job.rounds, job.lanes.most_exponent) == (3, 5, 20, -4)
    assert job.numbers.seed == 20261120
    told = json.loads(output)["data"]
    assert told["job"] == job.id.hex()
    assert told["message_bytes"] == job.lanes.message_bytes
    members = Members.read(tmp_path / "job" / "members.json", job)
    assert [str(url) for of in members.urls for url in of] == [
        f"http://127.0.0.1:{8720 + n}" for n in range(3)
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--density", "1/3"), "expected one of 1, 1/8, 1/16, 1/32, 1/64, got 1/3"),
        (("--density", "little"), "expected a fraction such as 1/8, got little"),
        (("--inner-steps", "7"), "expected a number that divides the 100 steps of a lane, got 7"),
    ],
)
def test_what_is_no_job_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    code, _, errors = split(tmp_path, *arguments)
    assert code == 2
    assert said in errors
    assert not (tmp_path / "job").exists()


def not_captured(*_arguments: object) -> None:
    raise AssertionError("what is wrong is seen before the capture")


def begin(folder: Path, inner_steps: int = 5, density: str = "1/8") -> None:
    splitting.split(cast(Context, None), Path(GPT), folder, 2, density, inner_steps, 1.0, 0, steps=1 << 32)


@pytest.mark.parametrize(("inner_steps", "density"), [(7, "1/8"), (1, "1/8"), (4, "1/3")])
def test_numbers_that_no_job_has_are_seen_before_the_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner_steps: int, density: str
) -> None:
    monkeypatch.setattr(source, "captured", not_captured)
    with pytest.raises(PlanError):
        begin(tmp_path / "job", inner_steps, density)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("used", "expected a new or empty folder, got one with files"),
        ("used/file", "expected a new or empty folder, got a file"),
        ("used/file/job", "expected a place that can be written to, got Not a directory"),
        ("/proc/job", "expected a place that can be written to"),
    ],
)
def test_an_output_that_takes_no_job_is_seen_before_the_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.setattr(source, "captured", not_captured)
    (tmp_path / "used").mkdir()
    (tmp_path / "used/file").write_text("mine")
    with pytest.raises(NotMade, match=said):
        begin(tmp_path / place, inner_steps=1 << 20)
    assert (tmp_path / "used/file").read_text() == "mine"
