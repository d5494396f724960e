"""Replays the vectors against an implementation of docs/spec, and reports where its answers differ.

    python -m tests.vectors --implementation module:Name

The implementation is a class that takes no arguments and has methods of `implementation.Implementation`. The
expected answers come from the files alone; nothing here uses this repository's package.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.vectors.readings import FILES, Case

SHOWN = 120
"""A difference shows at most this many characters of an answer."""


@dataclass(frozen=True)
class Difference:
    """An answer that differs from the file's."""

    file: str
    section: str
    case: Case
    got: Any

    def __str__(self) -> str:
        note = f" ({self.case.note})" if self.case.note else ""
        where = f"{self.file} {self.section}, row {self.case.row}{note}: {self.case.method}"
        due, got = self.case.expected, self.got
        if isinstance(due, bytes) and isinstance(got, bytes):
            if len(due) != len(got):
                where = f"{where}, {len(due)} and {len(got)} bytes"
            if max(len(due), len(got)) > SHOWN // 2:
                at = next(
                    (i for i, (x, y) in enumerate(zip(due, got, strict=False)) if x != y),
                    min(len(due), len(got)),
                )
                where, due, got = f"{where}, from byte {at} on", due[at:], got[at:]
        return f"{where}: expected {shown(due)}, got {shown(got)}"


@dataclass
class Section:
    """The outcome for one section of a file: how many cases were compared, which answers differ, and which
    methods are missing.
    """

    file: str
    name: str
    compared: int = 0
    differences: list[Difference] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        said = f"{self.file:24}{self.name:24}{self.compared:6} compared"
        if self.differences:
            said += f", {len(self.differences)} differ"
        return said + (f", not implemented: {', '.join(sorted(self.missing))}" if self.missing else "")


def replay(implementation: object, files: Collection[str] = tuple(FILES)) -> list[Section]:
    """Replay all sections of the files in order. An exception counts as a difference."""
    return list(sections(implementation, files))


def sections(implementation: object, files: Collection[str] = tuple(FILES)) -> Iterator[Section]:
    """Like `replay`, one section at a time."""
    for file in files:
        for name, cases in FILES[file]():
            section = Section(file, name)
            for case in cases:
                _compare(implementation, section, case)
            yield section


def _compare(implementation: object, section: Section, case: Case) -> None:
    method = getattr(implementation, case.method, None)
    if method is None:
        section.missing.add(case.method)
        return
    got: Any
    try:
        got = method(*case.arguments)
    except Exception as error:  # any exception is one wrong answer; the others are still compared
        got = error
    section.compared += 1
    if isinstance(got, Exception) or _plain(case.expected) != _plain(got):
        section.differences.append(Difference(section.file, section.name, case, got))


def _plain(value: Any) -> Any:
    """The value with tuples in place of lists, so that both count as the same answer."""
    if type(value) in (list, tuple):
        return tuple(map(_plain, value))
    return value


def shown(value: Any) -> str:
    """A value in short form; bytes as hexadecimal digits, an exception with the place that raised it."""
    text = "0x" + value.hex() if isinstance(value, bytes) else repr(value)
    if isinstance(value, Exception):
        last = traceback.extract_tb(value.__traceback__)[-1]
        text = f"{text} at {Path(last.filename).name}:{last.lineno}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
