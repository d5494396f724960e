"""A database is copied, and then migrated in whole steps. A file that is refused stays unchanged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from protocol.node.database import DatabaseError, Identity, NodeDatabase
from protocol.node.migrations import Execute, Migration, copy_of, rebuild

MINE = Identity("0xchain", "0xmarket", "0xaccount")


class First(NodeDatabase):
    """A party's database in format 1."""

    PARTY = "tester"
    VERSION = 1
    APPLICATION = 0x7E57
    SCHEMA = "CREATE TABLE notes (text TEXT NOT NULL) STRICT"

    def note(self, text: str) -> None:
        """Keep a text."""
        self._execute("INSERT INTO notes VALUES (?)", (text,))


def _number(execute: Execute) -> None:
    rebuild(
        execute,
        "notes",
        "CREATE TABLE notes (number INTEGER NOT NULL, text TEXT NOT NULL) STRICT",
        "SELECT rowid, text FROM former",
    )


def _add_marks(execute: Execute) -> None:
    execute("CREATE TABLE marks (number INTEGER NOT NULL) STRICT")


def _fail(execute: Execute) -> None:
    _add_marks(execute)
    raise sqlite3.OperationalError("database or disk is full")


def third(last: Callable[[Execute], None] = _add_marks) -> type[NodeDatabase]:
    """A database in format 3, whose last migration is `last`."""

    class Third(NodeDatabase):
        PARTY = First.PARTY
        VERSION = 3
        APPLICATION = First.APPLICATION
        SCHEMA = (
            "CREATE TABLE notes (number INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
            "CREATE TABLE marks (number INTEGER NOT NULL) STRICT"
        )
        MIGRATIONS = (Migration(1, "numbers", _number), Migration(2, "marks", last))

    return Third


def first(path: Path) -> Path:
    """A file of format 1 with two notes."""
    database = First(path, MINE)
    database.note("a")
    database.note("b")
    return path  # not closed: the notes may be in the write-ahead log alone


def found(path: Path, *queries: str) -> list[list[Any]]:
    """The rows of each query."""
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(query).fetchall() for query in queries]


VERSION, NOTES = "PRAGMA user_version", "SELECT * FROM notes"


def test_an_earlier_file_is_brought_to_this_format_and_a_copy_of_it_is_kept(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    third()(path, MINE).close()
    assert found(path, VERSION, NOTES) == [[(3,)], [(1, "a"), (2, "b")]]
    copy = copy_of(path, 1)
    assert found(copy, VERSION, NOTES) == [[(1,)], [("a",), ("b",)]]
    First(copy, MINE).close()
    assert not list(tmp_path.glob("*.unfinished*"))


def test_a_step_that_fails_leaves_the_format_before_it_and_is_made_up_for(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    with pytest.raises(DatabaseError, match=r"disk is full; .*data-v1\.sqlite beside it is as it was"):
        third(_fail)(path, MINE)
    assert found(path, VERSION, NOTES, "SELECT name FROM sqlite_master WHERE name = 'marks'") == [
        [(2,)],
        [(1, "a"), (2, "b")],
        [],
    ]
    third()(path, MINE).close()
    assert found(path, VERSION) == [[(3,)]]
    assert [found(copy_of(path, version), VERSION) for version in (1, 2)] == [[[(1,)]], [[(2,)]]]


def test_a_step_to_other_tables_than_a_new_file_has_is_taken_back(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    with pytest.raises(DatabaseError, match="other tables"):
        third(lambda _execute: None)(path, MINE)
    assert found(path, VERSION) == [[(2,)]]


def test_a_copy_that_was_cut_short_is_written_anew(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    unfinished = copy_of(path, 1).with_name("data-v1.sqlite.unfinished")
    unfinished.write_bytes(b"half a copy")
    third()(path, MINE).close()
    assert found(copy_of(path, 1), NOTES) == [[("a",), ("b",)]]


def test_without_room_for_a_copy_nothing_is_changed(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    (tmp_path / "data-v1.sqlite.unfinished").mkdir()
    with pytest.raises(DatabaseError, match="expected a copy of it beside it"):
        third()(path, MINE)
    assert found(path, VERSION) == [[(1,)]]


def test_a_later_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "data.sqlite"
    third()(path, MINE).close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=r"version 3; .*use the release that wrote it"):
        First(path, MINE)
    assert path.read_bytes() == before
    assert list(tmp_path.glob("data-v*")) == []


def test_a_file_of_another_market_is_refused_before_it_is_changed(tmp_path: Path) -> None:
    path = first(tmp_path / "data.sqlite")
    with pytest.raises(DatabaseError, match="0xother"):
        third()(path, Identity("0xchain", "0xother", "0xaccount"))
    assert found(path, VERSION) == [[(1,)]]
    assert not copy_of(path, 1).exists()


def test_a_damaged_file_is_refused_before_it_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "data.sqlite"
    database = First(path, MINE)
    for number in range(2_000):
        database.note(f"{number} " * 20)
    database.close()
    data = bytearray(path.read_bytes())
    data[5 * 4_096 : 9 * 4_096] = bytes(4 * 4_096)
    path.write_bytes(data)
    for kind in (First, third()):
        with pytest.raises(DatabaseError, match=r"put a backup in its place"):
            kind(path, MINE)
    assert path.read_bytes() == bytes(data)
