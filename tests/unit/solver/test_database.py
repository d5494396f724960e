"""The solver's database across restarts, kills and wrong files."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.node.database import DatabaseError, Identity
from solver.database import LIVE, CheckpointRow, Database, Stage, TaskRow

MINE = Identity("0xchain", "0xmarket", "0xaccount")


def test_every_stage_and_checkpoint_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "solver.sqlite"
    for sent, stage in enumerate(Stage):
        kept = Database(path, MINE)
        kept.put(5, stage, f"because {stage}")
        kept.put_sent(5, sent)
        kept.add_checkpoint(5, CheckpointRow(sent, f"manifest {sent}", bytes([sent]) * 32))
        kept.close()
        again = Database(path, MINE)
        assert again.tasks() == [TaskRow(5, stage, f"because {stage}", sent)]
        assert again.task(5) == again.tasks()[0]
        assert again.checkpoints(5)[-1] == CheckpointRow(sent, f"manifest {sent}", bytes([sent]) * 32)
        assert len(again.checkpoints(5)) == sent + 1
        again.close()


def test_sent_never_shrinks_and_a_stage_does_not_reset_it(tmp_path: Path) -> None:
    kept = Database(tmp_path / "solver.sqlite", MINE)
    kept.put(1, Stage.TRAINING)
    kept.put_sent(1, 4)
    kept.put_sent(1, 2)
    kept.put(1, Stage.SUBMITTED)
    assert kept.tasks() == [TaskRow(1, Stage.SUBMITTED, "", 4)]
    assert kept.task(2) is None


def test_what_every_look_asks_for_is_as_on_disk(tmp_path: Path) -> None:
    """The database's answers equal what is on disk, also after changes of stage and after restarts. It gives
    them without reading the disk.
    """
    kept = Database(tmp_path / "solver.sqlite", MINE)
    for task, stages in enumerate(
        [(Stage.REFUSED,), (Stage.BID, Stage.OUTBID), (Stage.BID, Stage.TRAINING, Stage.OVER), (Stage.BID,)],
        1,
    ):
        for stage in stages:
            kept.put(task, stage)
    for _ in range(2):
        rows = kept.tasks()
        assert kept.live(*LIVE) == [row.task for row in rows if row.stage in LIVE] == [2, 4]
        assert (kept.live(Stage.BID), kept.live(Stage.TRAINING)) == ([4], [])
        assert kept.counts() == Counter(row.stage for row in rows)
        kept.close()
        kept = Database(tmp_path / "solver.sqlite", MINE)
    kept.close()
    assert kept.live(Stage.OUTBID) == [2], "a file that is closed is not asked"


def test_the_last_tasks_of_a_stage(tmp_path: Path) -> None:
    kept = Database(tmp_path / "solver.sqlite", MINE)
    for task in (5, 1, 9, 3):
        kept.put(task, Stage.OVER)
    kept.put(8, Stage.REFUSED)
    assert [row.task for row in kept.last(Stage.OVER, 3)] == [3, 5, 9]
    assert kept.last(Stage.BID, 3) == []


def test_a_checkpoint_is_kept_once(tmp_path: Path) -> None:
    kept = Database(tmp_path / "solver.sqlite", MINE)
    kept.put(1, Stage.TRAINING)
    kept.add_checkpoint(1, CheckpointRow(0, "m", bytes(32)))
    with pytest.raises(sqlite3.IntegrityError):
        kept.add_checkpoint(1, CheckpointRow(0, "other", bytes(32)))


def test_what_was_written_outlives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "solver.sqlite"
    code = (
        "import sys, time; from pathlib import Path; from solver.database import *\n"
        "from protocol.node.database import Identity\n"
        "kept = Database(Path(sys.argv[1]), Identity('0xchain', '0xmarket', '0xaccount'))\n"
        "kept.put(3, Stage.TRAINING)\n"
        "for n in range(10_000): kept.add_checkpoint(3, CheckpointRow(n, 'm', bytes(32))); print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while int(process.stdout.readline()) < 20:
        pass
    os.kill(process.pid, signal.SIGKILL)
    written = [*map(int, process.stdout.read().split())]
    process.stdout.close()
    process.wait()
    numbers = [row.number for row in Database(path, MINE).checkpoints(3)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > max([20, *written])


@pytest.mark.parametrize("other", ["chain", "market", "account"])
def test_data_of_another_chain_market_or_account_is_refused(tmp_path: Path, other: str) -> None:
    Database(tmp_path / "solver.sqlite", MINE).close()
    with pytest.raises(DatabaseError, match="0xother"):
        Database(tmp_path / "solver.sqlite", replace(MINE, **{other: "0xother"}))


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "solver.sqlite"
    Database(path, MINE).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {Database.VERSION + 1}")
    connection.close()
    with pytest.raises(
        DatabaseError, match=rf"expected version {Database.VERSION}, got .* version {Database.VERSION + 1}"
    ):
        Database(path, MINE)


def test_another_programs_file_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    with pytest.raises(DatabaseError, match=f"expected version {Database.VERSION}"):
        Database(foreign, MINE)
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all " * 100)
    with pytest.raises(DatabaseError, match="move it away"):
        Database(damaged, MINE)
