"""The table of attacks in README.md is complete, and all tests that it or docs/security.md names exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COUNT = 132
STATES = {"held", "argued", "open"}
"""The values that the column `state` may have."""


class Line(NamedTuple):
    number: int
    attack: str
    outcome: str
    tests: list[str]
    state: str


@cache
def lines() -> list[Line]:
    found = []
    for row in (HERE / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0].isdigit():
            number, attack, outcome, where, state = cells
            found.append(Line(int(number), attack, outcome, re.findall(r"`([^`]+)`", where), state))
    return found


@cache
def all_files() -> list[Path]:
    return [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "contracts/test").rglob("*.t.sol")]


def missing(names: Iterable[str]) -> list[str]:
    """The names `path::test` whose path does not fit exactly one file, or whose test is not in that file. A
    path may lack leading folders.
    """
    lost = []
    for name in sorted(set(names)):
        path, _, test = name.partition("::")
        files = [file for file in all_files() if f"/{file.relative_to(ROOT).as_posix()}".endswith(f"/{path}")]
        keyword = "function" if path.endswith(".sol") else "def"
        if len(files) != 1 or not re.search(rf"\b{keyword} {test}\(", files[0].read_text()):
            lost.append(name)
    return lost


def test_every_attack_is_listed_once_and_in_order() -> None:
    assert [line.number for line in lines()] == list(range(1, COUNT + 1))


def test_every_named_test_exists() -> None:
    assert missing(test for line in lines() for test in line.tests) == []


def test_every_test_that_the_page_on_security_names_exists() -> None:
    named = re.findall(r"`([\w/.]+::\w+)`", (ROOT / "docs/security.md").read_text())
    assert len(named) > 100
    assert missing(named) == []


def test_a_line_has_an_outcome_and_tests_where_it_is_held() -> None:
    for line in lines():
        assert line.state in STATES, line
        assert line.outcome not in ("", "-"), line
        assert line.tests or line.state != "held", line


def test_every_test_of_this_folder_is_in_the_table_or_in_the_text() -> None:
    text = (HERE / "README.md").read_text()
    files = [*HERE.glob("test_*.py"), *(ROOT / "contracts/test/attacks").glob("*.t.sol")]
    assert [file.name for file in files if file.name not in text] == []
