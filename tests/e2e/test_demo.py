"""The demo's stories with the real processes: the demo runs once, and the tests check its report.

The parties communicate only through the chain and HTTP. The report is computed from events and receipts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from examples.demo.play import LIMIT_SECONDS, WHOLE
from tests.toolchain.project import REPOSITORY

GRACE_SECONDS = 60
"""Seconds for the demo to report what has not ended, and to end its processes."""

pytestmark = [pytest.mark.chain, pytest.mark.timeout(LIMIT_SECONDS + 2 * GRACE_SECONDS)]

SERVED = {"b": "one-ulp", "c": "wrong-rate", "d": "skipper"}
TRANSFORMER = {"i": "second-moment", "j": "dropout-mask", "k": "softmax"}
SLASHED = {**SERVED, "f": "silent", **TRANSFORMER, "m": "wrong-rate"}

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("demo")
    # Low priority, so that its two dozen processes do not slow other tests; its clock waits for its work.
    command = [
        *("nice", "-n", "10"),
        sys.executable,
        "-m",
        "examples.demo",
        "--folder",
        str(folder / "stage"),
        "--json",
    ]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, told = process.communicate(timeout=LIMIT_SECONDS + GRACE_SECONDS)
    finally:
        process.terminate()  # it ends its own processes before itself
        process.wait(GRACE_SECONDS)
    assert process.returncode == 0, told
    printed = json.loads(output)
    written: Report = json.loads((folder / "stage" / "report.json").read_text())
    assert printed["data"] == written
    return written


def run(report: Report, story: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in report["runs"] if entry["story"] == story)
    return found


def test_the_chain_is_named_and_every_story_is_told(report: Report) -> None:
    assert report["chain"]["client"].startswith("anvil/")
    assert report["chain"]["chain_id"] == 31337
    assert [entry["story"] for entry in report["runs"]] == list("abcdefghijklmnop")
    assert [entry["task"] for entry in report["runs"]] == ["digits"] * 7 + ["gpt"] * 4 + ["digits"] * 5


def test_an_honest_solver_is_audited_and_paid(report: Report) -> None:
    honest = run(report, "a")
    assert (honest["solver"], honest["verdict"], honest["segments"]) == ("honest", "settled", 8)
    assert len(honest["audited"]) == 2, "the segments of its seat"
    assert honest["paid"] == "90", "nine tenths of the budget: the solver's first bid, and the only one"
    assert honest["metrics"]["loss"] < 0.1
    assert honest["metrics"]["accuracy"] > 0.95


@pytest.mark.parametrize("story", SLASHED)
def test_a_cheat_is_walked_down_to_one_number_and_slashed(report: Report, story: str) -> None:
    found = run(report, story)
    assert (found["solver"], found["verdict"]) == (SLASHED[story], "slashed")
    assert found["stake"] == "1000"
    assert found["game"]["verdict"] == "solver_false"
    assert found["game"]["claimed_bits"] != found["game"]["computed_bits"]


def test_one_ulp_is_found_where_it_was_moved(report: Report) -> None:
    game = run(report, "b")["game"]
    assert (game["segment"], game["step"]) == (3, 17)
    assert game["path"] == ["step", "sgd_momentum"]
    assert (game["primitive"], game["element"]) == ("sub", [4, 31])
    assert int(game["claimed_bits"], 16) - int(game["computed_bits"], 16) == 1


def test_the_wrong_rate_is_found_in_the_first_wrong_step_of_its_segment(report: Report) -> None:
    game = run(report, "c")["game"]
    assert (game["segment"], game["step"]) in [(5, 12), (6, 1), (7, 1), (8, 1)]
    assert (game["path"], game["primitive"]) == (["step"], "gather")
    assert int(game["claimed_bits"], 16) - int(game["computed_bits"], 16) == 1 << 23


def test_the_old_checkpoint_is_found_at_the_edge_of_its_first_step(report: Report) -> None:
    game = run(report, "d")["game"]
    assert (game["segment"], game["step"], game["path"]) == (6, 1, ["step"])
    assert game["primitive"] == "output"
    assert len(game["claimed_bits"]) == 2 + 64


def test_another_initial_state_is_refused_by_the_market(report: Report) -> None:
    refused = run(report, "e")
    assert refused["verdict"] == "refunded"
    assert "LeafNotInTree" in refused["refusal"]
    assert (refused["audited"], refused["draws"]) == ([], 0)


def test_the_silent_cheat_is_made_to_speak_on_chain(report: Report) -> None:
    silent = run(report, "f")
    game, gas = silent["game"], silent["gas"]
    assert (game["segment"], game["step"], game["path"]) == (7, 30, ["step", "linear"])
    assert (game["primitive"], game["element"]) == ("dot", [37, 7])
    assert len(gas["demand"]) == len(gas["reveal"]) > 0
    assert len(gas["split"]) == 1


def test_the_accuser_of_an_honest_solver_loses_its_bond(report: Report) -> None:
    found = run(report, "g")
    accusation = found["accusation"]
    assert (found["solver"], found["verdict"], found["paid"]) == ("honest", "settled", "90")
    assert (accusation["challenger"], accusation["bond"]) == ("false-accuser", "20")
    assert accusation["game"]["verdict"] == "challenger_silent"
    assert "computed_bits" not in accusation["game"]


def test_a_gpt_is_trained_audited_and_paid(report: Report) -> None:
    honest = run(report, "h")
    assert (honest["solver"], honest["verdict"], honest["segments"]) == ("honest", "settled", 5)
    assert honest["paid"] == "90"
    assert honest["metrics"]["loss"] < 4.0, "of 5.55 nats a byte before the first step"


def test_adams_second_moment_is_found_where_it_was_moved(report: Report) -> None:
    game = run(report, "i")["game"]
    assert (game["segment"], game["step"]) == (2, 13)
    assert game["path"] == ["step", "adamw"]
    assert (game["primitive"], game["element"]) == ("add", [70, 9])
    assert int(game["claimed_bits"], 16) - int(game["computed_bits"], 16) == 1


def test_the_wrong_dropout_mask_is_found(report: Report) -> None:
    game = run(report, "j")["game"]
    assert (game["segment"], game["step"]) == (3, 7)
    assert game["path"] == ["step", "keep_mask"]
    assert (game["primitive"], game["element"]) == ("lt", [2, 5, 11])
    assert {int(game["claimed_bits"], 16), int(game["computed_bits"], 16)} == {0, 1}


def test_the_softmax_denominator_is_found(report: Report) -> None:
    game = run(report, "k")["game"]
    assert (game["segment"], game["step"]) == (4, 8)
    assert game["path"] == ["step", "softmax"]
    assert (game["primitive"], game["element"]) == ("round_scaled", [3, 1, 30, 0])
    assert int(game["claimed_bits"], 16) - int(game["computed_bits"], 16) == 1 << 23


def test_a_silent_seat_pays_for_another_draw_and_is_filled_by_another(report: Report) -> None:
    found = run(report, "l")
    assert (found["solver"], found["verdict"], found["paid"]) == ("honest", "settled", "90")
    assert found["silent"]["penalty"] == "2.1", "the fee of its seat, and a draw's"
    assert found["draws"] >= 2
    assert run(report, "a")["draws"] == 1
    assert 1 <= len(found["audited"]) <= 5, "a segment a seat"


def test_a_seat_is_whole_after_an_accomplices_conviction(report: Report) -> None:
    found = run(report, "m")
    seat, fee = found["seat"], 8 * 3
    assert found["convicted_by"] == "the accomplice"
    assert seat["ended"] in WHOLE, "either way its bond is back"
    assert Decimal(seat["bond"]) > 0
    assert Decimal(seat["paid"]) > fee, "what a game costs, and the fee of its eight segments"
    assert found["compensated"] == {"0": seat["paid"]}
    assert Decimal(found["reward"]) <= Decimal(found["stake"]) / 8


def test_a_seat_that_had_its_digest_computed_loses_its_lock_and_is_filled_by_another(report: Report) -> None:
    found = run(report, "n")
    assert (found["solver"], found["verdict"], found["paid"]) == ("honest", "settled", "90")
    assert found["informed_by"] == "the verifier"
    assert found["informed"]["paid"] == "2", "half of what the seat binds"
    assert found["draws"] >= 2


def test_a_rubber_stamp_loses_its_lock_to_the_look_at_it(report: Report) -> None:
    found = run(report, "o")
    assert (found["solver"], found["verdict"], found["paid"]) == ("honest", "settled", "90")
    assert found["draws"] == 2, "of its seat, and of the look"
    assert 1 <= found["caught"]["accused"]["step"] < 50
    assert found["caught"]["paid"] == "15", "half of what the seat binds"
    assert found["caught"]["gas"]["accuse"] < 600_000


def test_withheld_data_come_before_a_jury_and_the_task_is_not_paid(report: Report) -> None:
    found = run(report, "p")
    assert (found["solver"], found["verdict"]) == ("withholder", "void")
    assert len(found["audited"]) == 4, "the segments of the accomplice's seat"
    assert found["draws"] == 2, "of its seats, and of the jury"
    withheld = found["withheld"]
    assert (withheld["yes"], withheld["no"]) == (0, 3)
    assert 1 <= withheld["item"] <= 8, "a state"
    assert withheld["gas"]["claim"] < 250_000
    assert max(withheld["gas"]["votes"]) < 70_000
    assert "paid" not in found


def test_gas_is_within_the_bounds(report: Report) -> None:
    for story in SLASHED:
        found = run(report, story)
        gas = found["gas"]
        moves = [gas["challenge"], gas["judge"], gas["commit"]]
        moves += [cost for kind in ("expand", "select", "demand", "reveal", "split") for cost in gas[kind]]
        assert gas["total"] == sum(moves)
        assert found["transactions"] == len(moves)
        assert max(moves) < 1_000_000
        assert gas["judge"] < 300_000
        if story in SERVED | TRANSFORMER:
            assert gas["total"] < 3_000_000
            assert found["transactions"] <= 12
