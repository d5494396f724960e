"""Today's sender reads journals of every format so far, as written by the code of their time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from protocol.chain.errors import JournalError
from protocol.chain.journal import VERSION, Entry, Journal, Status
from tests.unit.node.dumps import Dump, dumps, written

ALL = dumps("journal")


def told(entries: Sequence[Entry]) -> list[list[object]]:
    """Entries as lists of values, in the form in which a dump's `known` holds them."""
    return [[e.hash, e.intent, e.label, e.nonce, e.raw.hex(), e.status.value, e.block] for e in entries]


@pytest.mark.parametrize("dump", ALL, ids=lambda dump: dump.name)
def test_what_was_sent_and_is_pending_is_known(tmp_path: Path, dump: Dump) -> None:
    journal, known = Journal(written(dump, tmp_path / "journal.sqlite")), dump.known
    assert told(journal.pending()) == known["pending"]
    assert {intent: told(journal.of_intent(intent)) for intent in known["intents"]} == known["intents"]
    (pending, *_) = journal.pending()
    journal.mark(pending.hash, Status.MINED, 200)
    assert journal.of_intent(pending.intent)[0].status is Status.MINED
    journal.write([Entry("0xff", "later", "label", 99, b"raw", Status.PENDING, None)])
    assert journal.pending()[-1].intent == "later"
    journal.close()


def test_every_version_has_a_dump() -> None:
    assert {dump.known["version"] for dump in ALL} == set(range(1, VERSION + 1))


def test_a_later_one_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = written(ALL[-1], tmp_path / "journal.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(JournalError, match=f"got {VERSION + 1}; use the release that wrote it"):
        Journal(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchall() == [(VERSION + 1,)]


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = Journal(path)
    journal.write(
        [Entry(f"0x{n:064x}", "intent", "label", n, bytes(900), Status.PENDING, None) for n in range(200)]
    )
    journal.close()
    data = bytearray(path.read_bytes())
    data[20 * 4_096 : 24 * 4_096] = bytes(4 * 4_096)
    path.write_bytes(data)
    with pytest.raises(JournalError, match="expected an SQLite file of this program"):
        Journal(path)
