"""If a part of `python -m benchmarks.cuda` raises an error, crashes or hangs, its results are kept and the
way it ended is reported.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from benchmarks.cuda import child, models
from benchmarks.cuda.__main__ import FIRST, ROUNDS, observe, run
from benchmarks.cuda.cells import cell, is_well, read
from benchmarks.cuda.child import PARTS

LIMIT = 60.0
WRITE = "from benchmarks.cuda.cells import write; write('first', {'value': {'wrong': None}});"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", WRITE + code]


def test_a_part_that_ends_well_is_ok() -> None:
    found = observe(python(""), {}, LIMIT)
    assert (found["ok"], found["exit"], found["summary"]) == (True, 0, "1 of 1 well")
    assert "output" not in found


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("raise ValueError('no device')", 1, "ValueError: no device"),
        ("import os; print('before the end', flush=True); os.abort()", -6, "before the end"),
        ("import sys; sys.exit('gone')", 1, "gone"),
    ],
)
def test_a_part_that_breaks_off_keeps_its_cells_and_its_last_words(
    code: str, exit_code: int, said: str
) -> None:
    found = observe(python(code), {}, LIMIT)
    assert (found["ok"], found["exit"]) == (False, exit_code)
    assert f"exit code {exit_code}" in found["summary"]
    assert found["cells"] == {"first": {"value": {"wrong": None}}}
    assert any(said in line for line in found["output"])


def test_a_part_that_hangs_is_stopped_with_all_that_it_started() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    start = time.monotonic()
    found = observe(python(code), {}, 10.0)
    assert time.monotonic() - start < 60
    assert (found["ok"], found["exit"]) == (False, None)
    assert found["summary"] == "1 of 1 well; stopped after 10 s"


def test_a_wrong_cell_makes_its_part_wrong() -> None:
    found = observe(python("write('second', {'value': {'same_bits': False}})"), {}, LIMIT)
    assert (found["ok"], found["wrong"], found["exit"]) == (False, ["second"], 0)


def test_without_time_a_part_is_left_out() -> None:
    assert run(FIRST[0], True, 0.0)["summary"] == "left out: no time left"


def test_a_cell_that_raises_holds_the_error() -> None:
    found = cell(lambda: [][1])
    assert not is_well(found)
    error = found["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"]) == ("IndexError", "list index out of range")
    assert error["traceback"][-1] == "IndexError: list index out of range"


def test_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "cells"
    file.write_text('{"cell": "first", "value": 1}\n{"cell": "sec')
    assert read(file) == [{"cell": "first", "value": 1}]


def test_every_part_is_in_the_order() -> None:
    names = [part.name for group, _ in ROUNDS for part in group if not part.tests]
    assert sorted(names) == sorted([*PARTS, "native"])


def test_every_model_has_a_part() -> None:
    assert tuple(model.name for model in models.MODELS) == child.MODELS
