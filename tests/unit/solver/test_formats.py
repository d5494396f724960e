"""Today's solver reads databases of every earlier format, as written by the code of their time."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from protocol.node.database import Identity
from solver.database import CheckpointRow, Database, Stage
from solver.migrations import MIGRATIONS
from tests.unit.node.dumps import Dump, dumps, written

ME = Identity("0xchain", "0xmarket", "0xaccount")
ALL = dumps("solver")


@pytest.mark.parametrize("dump", ALL, ids=lambda dump: dump.name)
def test_everything_that_was_known_is_known(tmp_path: Path, dump: Dump) -> None:
    path = written(dump, tmp_path / "solver.sqlite")
    for _ in range(2):
        database, known = Database(path, ME), dump.known
        rows = database.tasks()
        assert [[row.task, row.stage.value, row.note, row.sent] for row in rows] == known["tasks"]
        assert known["checkpoints"] == {
            str(row.task): [
                [one.number, one.manifest, one.root.hex()] for one in database.checkpoints(row.task)
            ]
            for row in rows
        }
        ledger = ("flows", database.flows()), ("spent", database.spent())
        for name, entries in ledger:
            assert [list(map(str, astuple(one))) for one in entries] == known.get(name, [])
        booked = database.booked()
        assert (None if booked is None else list(astuple(booked))) == known.get("booked")
        database.close()
    database = Database(path, ME)
    training = next(row.task for row in rows if row.stage is Stage.TRAINING)
    kept = database.checkpoints(training)
    database.add_checkpoint(training, CheckpointRow(len(kept), "ab" * 32, bytes(32)))
    assert database.checkpoints(training)[:-1] == kept


def test_every_version_has_a_dump_and_a_step_to_the_next() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, Database.VERSION))
    assert {dump.known["version"] for dump in ALL} == set(range(1, Database.VERSION + 1))
