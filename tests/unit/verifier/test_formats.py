"""Today's verifier reads databases of every earlier format, as written by the code of their time."""

from __future__ import annotations

import sqlite3
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from protocol.node.database import DatabaseError, Identity
from protocol.node.migrations import copy_of, shape
from tests.unit.node.dumps import Dump, dumps, written
from verifier.database import Challenge, Database
from verifier.migrations import MIGRATIONS

ME = Identity("0xchain", "0xmarket", "0xaccount")
A, B, HASH = (bytes([byte]) * 32 for byte in (0xA1, 0xB2, 0x4A))
NO_SEAT = 255
ALL = dumps("verifier")


def as_now(row: dict[str, Any]) -> dict[str, Any]:
    """Converts a challenge of any format to today's form.

    Challenges of earlier formats may lack fields. Instead of `opening_until`, they may have `reclaimable`,
    which is one second later.
    """
    now: dict[str, Any] = {"seat": NO_SEAT, "account": ME.account, "asks": False} | row
    if "reclaimable" in now:
        after = now.pop("reclaimable")
        now["opening_until"] = after - 1 if after else after
    return now


def read(row: Challenge) -> dict[str, Any]:
    """Converts a challenge from the database to a dictionary in the form that the dumps use."""
    told = {field.name: getattr(row, field.name) for field in fields(row)}
    return told | {"salt": row.salt.hex(), "roots": [root.hex() for root in row.checkpoint_roots()]}


@pytest.mark.parametrize("dump", ALL, ids=lambda dump: dump.name)
def test_everything_that_was_known_is_known(tmp_path: Path, dump: Dump) -> None:
    path = written(dump, tmp_path / "verifier.sqlite")
    for _ in range(2):  # only the first opening upgrades it
        database, known = Database(path, ME), dump.known
        assert [task for task in range(99) if database.is_finished(task)] == known["finished"]
        assert {root: sorted(database.checked(3, bytes.fromhex(root))) for root in known["checked"]} == known[
            "checked"
        ]
        challenges = [row for task in range(12) for row in database.all_challenges(task)]
        assert [read(row) for row in challenges] == [as_now(row) for row in known["challenges"]]
        assert [[row.task, row.seat] for row in database.open_challenges()] == [
            [task, NO_SEAT if seat is None else seat] for task, seat in known["open"]
        ]
        assert known["states"] == [
            [row.number, row.own, row.root.hex(), row.manifest]
            for own in (False, True)
            for row in database.states(4, own)
        ]
        assert database.own_segments(4) == known["own_segments"]
        assert [task for task in range(12) if database.is_held(task)] == known.get("held", [])
        assert database.held_before(1_800_000_001) == known.get("held_before", [])
        assert [salt.hex() for salt in database.salts(3, 0)] == known.get("salts", [])
        claimed = [[task, seat] for task in range(12) for seat in range(4) if database.is_claimed(task, seat)]
        assert claimed == known.get("claimed", [])
        digest, attested = database.digest(3, HASH, 2, B), database.attested(3, HASH)
        assert (digest and digest.hex(), attested and attested.hex()) == (
            known.get("digest"),
            known.get("attested"),
        )
        assert sorted(database.digested(3, HASH, B)) == known.get("digested", [])
        assert [root.hex() for root in database.steps(3, HASH, 2)] == known.get("steps", [])
        assert [root.hex() for root in database.commitment(3, B)] == known.get("commitment", [])
        database.close()


@pytest.mark.parametrize("dump", ALL, ids=lambda dump: dump.name)
def test_an_upgraded_file_takes_new_rows_and_has_the_tables_of_a_new_one(tmp_path: Path, dump: Dump) -> None:
    path = written(dump, tmp_path / "verifier.sqlite")
    upgraded = Database(path, ME)
    upgraded.put_challenge(Challenge(20, 1, ME.account, 2, A, B, asks=True))
    upgraded.put_attested(20, 1, HASH, A)
    upgraded.put_digest(20, HASH, 1, A, B)
    upgraded.put_steps(20, HASH, 1, [A, B])
    upgraded.put_commitment(20, A, [A, B])
    upgraded.put_salt(20, 1, A)
    upgraded.put_claimed(20, 1)
    upgraded.hold(20, 1)
    upgraded.finish(4)
    assert upgraded.states(4, own=True) == []
    Database(tmp_path / "new.sqlite", ME).close()
    shapes = []
    for file in (path, tmp_path / "new.sqlite"):
        with sqlite3.connect(file) as connection:
            shapes.append(shape(lambda sql: connection.execute(sql).fetchall()))
        connection.close()
    assert shapes[0] == shapes[1]


def test_every_version_has_a_dump_and_a_step_to_the_next() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, Database.VERSION))
    assert {dump.known["version"] for dump in ALL} == set(range(1, Database.VERSION + 1))


def test_a_file_whose_tables_are_not_of_its_version_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "verifier.sqlite"
    Database(path, ME).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(DatabaseError, match=r"expected tables of version 3.* put a backup in its place"):
        Database(path, ME)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchall() == [(3,)]
        assert connection.execute("SELECT count(*) FROM challenges").fetchall() == [(0,)]
    connection.close()
    assert copy_of(path, 3).exists()
