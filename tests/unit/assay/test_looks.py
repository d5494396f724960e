"""Looks of a task: none where its file says nothing, and time to answer them all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.deriving import Place
from assay.description import read
from assay.errors import DescriptionError
from assay.submitting import Prepared, prepare
from protocol.chain.parameters import DEVNET
from protocol.node.home import Home
from protocol.tasks.task import Terms

DIGITS = Path(__file__).parents[3] / "examples" / "digits.toml"


def prepared(folder: Path, *lines: str) -> Prepared:
    (folder / "digits.py").write_text(DIGITS.with_suffix(".py").read_text())
    file = folder / "digits.toml"
    file.write_text(DIGITS.read_text().replace("seat_lock = 5 ", "\n".join([*lines, "# "])))
    return prepare(read(file), Home(folder / "home"))


def terms(made: Prepared) -> Terms:
    return made.terms("http://127.0.0.1", made.derived(Place(DEVNET)))


def test_an_unsaid_chance_is_none_and_half_of_the_time_to_attest_is_left_for_answers(tmp_path: Path) -> None:
    found = terms(prepared(tmp_path))
    assert (found.look_chance, found.move_time, found.attest_period) == (0, 20, 40)


def test_a_chance_and_a_time_are_taken_and_the_lock_covers_them(tmp_path: Path) -> None:
    found = terms(prepared(tmp_path, "look_chance = 1_000", "move_time = 7"))
    assert (found.look_chance, found.move_time) == (1_000, 7)
    assert found.seat_lock == 4 * found.game_cost


def test_a_chance_above_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"terms\.look_chance"):
        prepared(tmp_path, "look_chance = 10_001")
