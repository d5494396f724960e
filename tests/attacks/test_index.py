"""The table of attacks in README.md is true: complete, and every test that it names exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COUNT = 80
LATER = {
    "data challenges",
    "device classes",
    "forced errors",
    "heartbeats",
    "sealed attestations",
}
"""Features that are not built yet; a line may wait for one of them in whole or in part."""


class Line(NamedTuple):
    number: int
    attack: str
    outcome: str
    tests: list[str]
    waits: str


@cache
def lines() -> list[Line]:
    found = []
    for row in (HERE / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0].isdigit():
            number, attack, outcome, where, waits = cells
            found.append(Line(int(number), attack, outcome, re.findall(r"`([^`]+)`", where), waits))
    return found


def test_every_attack_is_listed_once_and_in_order() -> None:
    assert [line.number for line in lines()] == list(range(1, COUNT + 1))


def test_every_named_test_exists() -> None:
    missing = []
    for name in sorted({test for line in lines() for test in line.tests}):
        path, _, test = name.partition("::")
        keyword = "function" if path.endswith(".sol") else "def"
        file = ROOT / path
        if not file.is_file() or not re.search(rf"\b{keyword} {test}\(", file.read_text()):
            missing.append(name)
    assert not missing


def test_a_line_has_tests_and_an_outcome_or_waits_for_a_feature() -> None:
    for line in lines():
        assert line.waits in LATER | {"-"}, line
        assert line.tests or line.waits != "-", line
        assert line.outcome != "-" or not line.tests, line


def test_every_test_of_this_folder_is_in_the_table_or_in_the_text() -> None:
    text = (HERE / "README.md").read_text()
    files = [*HERE.glob("test_*.py"), *(ROOT / "contracts/test/attacks").glob("*.t.sol")]
    assert [file.name for file in files if file.name not in text] == []
