"""docs/decisions: numbers are consecutive except for UNUSED, every file has a fixed form, and the index
matches the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY

FOLDER = REPOSITORY / "docs" / "decisions"
FILES = sorted(path for path in FOLDER.iterdir() if path.name != "README.md")
UNUSED = {171}
"""Numbers that were skipped."""
FORM = re.compile(r"# (\d+)\. (.+)\n\n- Date: (\d{4}-\d\d-\d\d)\n- Status: (.+)\n\n(## [\s\S]+)")
TARGETS = r"\[\d+\]\([\w.-]+\)(?: and \[\d+\]\([\w.-]+\))*"
STATUS = re.compile(rf"holds|replaced by ({TARGETS})|replaced in part by ({TARGETS}): \S.*")
SECTIONS = (("What", "Why", "Price"), ("What and why", "Price"))
FURTHER = ("Considered", "Open")
ROW = re.compile(r"\| \[(\d+)\]\(([\w.-]+)\) \| (.+) \| (\S+) \| ([\w ]+) \|")


@dataclass(frozen=True)
class Decision:
    """One decision, as its file states it."""

    number: int
    title: str
    date: str
    status: str
    sections: tuple[str, ...]

    @property
    def replaced_by(self) -> dict[int, str]:
        """Numbers and files of the decisions that replace this one."""
        return {int(number): file for number, file in re.findall(r"\[(\d+)\]\(([\w.-]+)\)", self.status)}

    @property
    def short_status(self) -> str:
        """The status in the index: without links, and without saying which part is replaced."""
        return re.sub(r"\[(\d+)\]\([^)]*\)", r"\1", self.status).split(":")[0]


def parse(text: str) -> Decision:
    """Read a decision. Raises ValueError for a text of another form."""
    found = FORM.fullmatch(text)
    if found is None:
        raise ValueError("expected a title, a date, a status and sections")
    number, title, day, status, body = found.groups()
    if STATUS.fullmatch(status) is None:
        raise ValueError(f"expected holds, or replaced by a number, got {status}")
    date.fromisoformat(day)
    return Decision(int(number), title, day, status, tuple(re.findall(r"^## (.+)$", body, re.MULTILINE)))


DECISIONS = {path.name: parse(path.read_text()) for path in FILES}


def test_numbers_follow_each_other() -> None:
    numbers = [decision.number for decision in DECISIONS.values()]
    assert numbers == [n for n in range(1, numbers[-1] + 1) if n not in UNUSED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_its_number_and_its_sections(path: Path) -> None:
    decision = DECISIONS[path.name]
    assert re.fullmatch(rf"{decision.number:03d}-[a-z0-9-]+\.md", path.name)
    further = tuple(name for name in decision.sections if name in FURTHER)
    assert decision.sections in [first + further for first in SECTIONS]


def test_what_replaces_a_decision_is_there() -> None:
    replaced = {name: decision.replaced_by for name, decision in DECISIONS.items() if decision.replaced_by}
    assert len(replaced) > 5
    for name, targets in replaced.items():
        for number, file in targets.items():
            assert DECISIONS[file].number == number, name
            assert number > DECISIONS[name].number, name


def test_the_index_says_what_the_files_say() -> None:
    rows = ROW.findall((FOLDER / "README.md").read_text())
    assert [(int(number), *rest) for number, *rest in rows] == [
        (found.number, name, found.title, found.date, found.short_status) for name, found in DECISIONS.items()
    ]


@pytest.mark.parametrize(
    "status",
    ["", "maybe", "replaced by 3", "replaced by [3](003-x.md): in part", "replaced in part by [3](003-x.md)"],
)
def test_another_status_is_refused(status: str) -> None:
    parse("# 1. A title\n\n- Date: 2026-11-20\n- Status: holds\n\n## What\n\nText.\n")
    with pytest.raises(ValueError, match="expected"):
        parse(f"# 1. A title\n\n- Date: 2026-11-20\n- Status: {status}\n\n## What\n\nText.\n")
