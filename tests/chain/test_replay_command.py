"""`sim replay` at the command line: its story, its table, its exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.mechanism import booking
from sim.replay.scenarios import SCENARIOS

pytestmark = pytest.mark.chain


def test_a_replay_ends_with_all_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", "/dev/null/nowhere")  # The operator's home is not touched.
    ended = CliRunner().invoke(app, ["replay", "deadline", "--json"])
    assert ended.exit_code == 0, ended.output
    data = json.loads(ended.stdout)["data"]
    assert data["outcomes"] == ["expired"]
    assert {row["difference"] for row in data["balances"]} == {0}
    assert {row["owner"] for row in data["balances"]} == {*data["gains"], "vault"}
    assert "to the last unit" in ended.stderr


def test_a_difference_ends_with_3_and_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking, "expire", lambda *_arguments: None)
    ended = CliRunner().invoke(app, ["replay", "deadline"])
    assert ended.exit_code == 3
    assert "engine and contracts disagree after task 1: expired" in ended.stderr
    row = next(line for line in ended.stdout.splitlines() if line.startswith("vault") and "burned" in line)
    assert row.split()[-3] == "0"
    assert row.split()[-1] == row.split()[-2] != "0"


def test_scenarios_are_listed_and_a_wrong_name_says_which_there_are() -> None:
    listed = CliRunner().invoke(app, ["replay", "--json"])
    assert [row["scenario"] for row in json.loads(listed.stdout)["data"]] == list(SCENARIOS)
    wrong = CliRunner().invoke(app, ["replay", "chaet"])
    assert wrong.exit_code == 2
    assert all(name in wrong.stderr for name in SCENARIOS)
    assert "did you mean cheat?" in wrong.stderr


def test_a_seed_is_for_the_market_alone() -> None:
    wrong = CliRunner().invoke(app, ["replay", "cheat", "--seed", "3"])
    assert wrong.exit_code == 2
    assert "replay market" in wrong.stderr
