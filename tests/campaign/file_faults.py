"""Faults of the party's disk: the disk is full; or, while the party is down, a file loses its last writes or
is damaged.

The file is the database or the journal of transactions; both are SQLite files. A file that loses its last
writes loses half of its write-ahead log, as on a disk that acknowledged writes and lost them. Without such a
log, it loses half of its bytes. A damaged file has one wrong page in the middle.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from protocol.errors import ExitCode
from tests.campaign.disks import SmallDisk
from tests.campaign.fault import Fault, Needs
from tests.campaign.party import NeedsHand, Party
from tests.campaign.process_faults import party_of
from tests.campaign.world import World

File = Literal["database", "journal"]
FOLDERS: Final[dict[File, str]] = {"database": "*/*/*er.sqlite", "journal": "journals/*/*.sqlite"}
"""Patterns of the files below the home folder. A party's database is named after the party, a journal after
the party's account.
"""
OPERATOR: Final[dict[File, str]] = {
    "database": "where it is refused: put the newest backup in its place, or move it away, and start again",
    "journal": "where it is refused: move it away, and start again",
}
WORDS: Final = ("expected", "got")
"""Words that a message about a refused file must contain."""


class DiskFull(Fault):
    """The home folder's disk of 16 MiB is full to the last byte."""

    name = "disk full"
    needs = Needs.WRITES
    operator = "make room on the disk; start it again where it has ended"
    least = 3.0
    most = 20.0
    ends_when_felt = True

    def prepare(self, world: World) -> None:
        """Put the party's home folder on a small disk."""
        world.disk = SmallDisk

    def apply(self, world: World) -> None:
        """Fill the disk."""
        self._lines, self._starts = len(party_of(world).lines()), party_of(world).starts
        self._disk(world).fill()

    def lift(self, world: World) -> None:
        """Make room as an operator would: delete the file that fills the disk."""
        self._disk(world).free()

    def felt(self, world: World) -> bool:
        """Whether the party has reported the full disk, or was restarted, since the fault began."""
        party = party_of(world)
        said = party.lines()[self._lines :]
        return party.starts > self._starts or any(_is_of_disk(str(line)) for line in said)

    @staticmethod
    def _disk(world: World) -> SmallDisk:
        disk = party_of(world).disk
        assert isinstance(disk, SmallDisk)
        return disk


class FileFault(Fault):
    """The party is killed, its files of one kind are harmed, and the party is started. If it refuses a file,
    the operator does what its message says: a database is replaced by its newest backup or, without a backup,
    removed; a journal is removed.
    """

    most = 0.0

    def __init__(self, file: File, harm: Callable[[Path], None], word: str) -> None:
        self.name = f"{file} {word}"
        self.needs = Needs.DATABASE if file == "database" else Needs.JOURNAL
        self.operator = OPERATOR[file]
        self._file = file
        self._harm = harm
        self._copies: dict[str, bytes] = {}
        self._said = ""
        self._harmed = 0

    @property
    def remedy(self) -> str:
        """What the party said when it refused a file; empty if it refused none."""
        return self._said

    def before(self, world: World) -> None:
        """Back up the files, as an operator does from time to time."""
        party = party_of(world)
        for path in self._paths(party):
            with closing(sqlite3.connect(path, timeout=10)) as source:
                self._copies[str(path)] = source.serialize()

    def apply(self, world: World) -> None:
        """Kill the party, harm its files and start it again. Then do what the party asks its operator for."""
        party = party_of(world)
        party.kill()
        lines = len(party.lines())
        for path in self._paths(party):
            self._harm(path)
            self._harmed += 1
        party.start()
        try:
            # A command typed by a person ends instead and says why.
            world.reach(
                lambda: party.said("ready", lines) or party.ended == ExitCode.FINE or bool(party.needed_hand)
            )
            self._said = party.needed_hand
        except NeedsHand as refused:
            if refused.code != ExitCode.HOPELESS:
                raise
            self._said = refused.said
        if self._said:
            assert all(word in self._said for word in WORDS), self._said
            self._mend(party)
            party.start()

    def felt(self, world: World) -> bool:
        """Whether any file was harmed."""
        return self._harmed > 0

    def _mend(self, party: Party) -> None:
        for path in self._paths(party):
            for part in (path, *_beside(path)):
                part.unlink(missing_ok=True)
            copy = self._copies.get(str(path)) if self._file == "database" else None
            if copy is not None:
                path.write_bytes(copy)

    def _paths(self, party: Party) -> list[Path]:
        return sorted(party.disk.seen.glob(FOLDERS[self._file]))


def cut(path: Path) -> None:
    """Cut off the second half of the file's write-ahead log. If there is no log, cut off the second half of
    the file.
    """
    log = _beside(path)[0]
    newest = log if log.is_file() and log.stat().st_size else path
    os.truncate(newest, newest.stat().st_size // 2)


def damage(path: Path) -> None:
    """Move the write-ahead log into the file, then invert all bits of the page in the middle."""
    with closing(sqlite3.connect(path, timeout=10)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = database.execute("PRAGMA page_size")
        ((pages,),) = database.execute("PRAGMA page_count")
    with path.open("r+b") as file:
        file.seek(pages // 2 * size)
        page = file.read(size)
        file.seek(pages // 2 * size)
        file.write(bytes(byte ^ 0xFF for byte in page))


def _beside(path: Path) -> tuple[Path, Path]:
    """The paths of an SQLite file's write-ahead log and of that log's index."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def _is_of_disk(line: str) -> bool:
    return any(words in line for words in ("is full", "No space left", "disk I/O error"))
