"""Migrations of the verifier's database from one format to the next.

The formats, with the commits that introduced them, are listed in `tests/vectors/README.md`. The SQL of each
migration is written out as it was at the time, and a migration imports nothing that may change later. Before
commit 139c04fb, two formats had several shapes each. Databases of format 4 may lack the table `salts`, or
have it with or without the column `informed`. Databases of format 6 have either `accusations` or
`challenges`. So the migrations from these two formats inspect the tables first.
"""

from __future__ import annotations

from typing import Final

from protocol.node.migrations import Execute, Migration, columns, rebuild, tables


def _sit_in_seats(execute: Execute) -> None:
    rebuild(
        execute,
        "attested",
        "CREATE TABLE attested ("
        "task INTEGER NOT NULL, seat INTEGER NOT NULL, root BLOB NOT NULL, PRIMARY KEY (task, seat)"
        ") STRICT, WITHOUT ROWID",
        "SELECT task, duty, steps FROM former",
    )
    execute("CREATE TABLE held (task INTEGER PRIMARY KEY, until INTEGER NOT NULL) STRICT")


def _accuse_from_accounts(execute: Execute) -> None:
    rebuild(
        execute,
        "accusations",
        "CREATE TABLE accusations ("
        "task INTEGER NOT NULL, seat INTEGER NOT NULL, account TEXT NOT NULL, segment INTEGER, salt BLOB NOT NULL, "
        "roots BLOB NOT NULL, opening_until INTEGER, game INTEGER, outcome TEXT, PRIMARY KEY (task, seat)"
        ") STRICT, WITHOUT ROWID",
        # 255 is NO_SEAT. `reclaimable` is the second after the last one for opening;
        # 0 stands for a commitment on its way in both formats.
        "SELECT task, 255, account, segment, salt, roots, "
        "CASE WHEN reclaimable > 0 THEN reclaimable - 1 ELSE reclaimable END, game, outcome FROM former, identity",
    )
    execute(
        "CREATE TABLE claimed (task INTEGER NOT NULL, seat INTEGER NOT NULL, PRIMARY KEY (task, seat)) "
        "STRICT, WITHOUT ROWID"
    )


def _digest_states(execute: Execute) -> None:
    rebuild(
        execute,
        "checked",
        "CREATE TABLE checked ("
        "task INTEGER NOT NULL, segment INTEGER NOT NULL, root BLOB NOT NULL, PRIMARY KEY (task, segment)"
        ") STRICT, WITHOUT ROWID",
        "SELECT task, segment, root FROM former",
    )
    # The former rows hold step tree roots, not digests, and belong to contracts that are no longer used.
    rebuild(
        execute,
        "attested",
        "CREATE TABLE attested ("
        "task INTEGER NOT NULL, seat INTEGER NOT NULL, salt_hash BLOB NOT NULL, digest BLOB NOT NULL, "
        "PRIMARY KEY (task, salt_hash)"
        ") STRICT, WITHOUT ROWID",
    )
    execute(
        "CREATE TABLE digests ("
        "task INTEGER NOT NULL, salt_hash BLOB NOT NULL, segment INTEGER NOT NULL, root BLOB NOT NULL, "
        "digest BLOB NOT NULL, PRIMARY KEY (task, salt_hash, segment)"
        ") STRICT, WITHOUT ROWID"
    )


def _look(execute: Execute) -> None:
    salts = (
        "CREATE TABLE salts ("
        "task INTEGER NOT NULL, seat INTEGER NOT NULL, salt BLOB NOT NULL, PRIMARY KEY (task, seat, salt)"
        ") STRICT, WITHOUT ROWID"
    )
    if "salts" not in tables(execute):
        execute(salts)
    elif "informed" in columns(execute, "salts"):
        # Salts that were shown are of no further use.
        rebuild(execute, "salts", salts, "SELECT task, seat, salt FROM former WHERE NOT informed")
    rebuild(
        execute,
        "accusations",
        "CREATE TABLE accusations ("
        "task INTEGER NOT NULL, seat INTEGER NOT NULL, account TEXT NOT NULL, segment INTEGER, salt BLOB NOT NULL, "
        "roots BLOB NOT NULL, opening_until INTEGER, game INTEGER, outcome TEXT, asks INTEGER NOT NULL, "
        "PRIMARY KEY (task, seat)"
        ") STRICT, WITHOUT ROWID",
        "SELECT task, seat, account, segment, salt, roots, opening_until, game, outcome, 0 FROM former",
    )


def _keep_roots(execute: Execute) -> None:
    execute(
        "CREATE TABLE steps ("
        "task INTEGER NOT NULL, salt_hash BLOB NOT NULL, segment INTEGER NOT NULL, roots BLOB NOT NULL, "
        "PRIMARY KEY (task, salt_hash, segment)"
        ") STRICT, WITHOUT ROWID"
    )
    execute(
        "CREATE TABLE commitments (task INTEGER PRIMARY KEY, root BLOB NOT NULL, roots BLOB NOT NULL) STRICT"
    )


def _call_them_challenges(execute: Execute) -> None:
    if "accusations" in tables(execute):
        execute("ALTER TABLE accusations RENAME TO challenges")


MIGRATIONS: Final = (
    Migration(1, "seats in place of duties; results are held", _sit_in_seats),
    Migration(
        2, "an accusation is of an account and a seat; claims after convictions", _accuse_from_accounts
    ),
    Migration(3, "digests under salts in place of roots of step trees", _digest_states),
    Migration(4, "salts of others; accusations that only ask", _look),
    Migration(5, "roots of states and commitments", _keep_roots),
    Migration(6, "accusations are called challenges", _call_them_challenges),
)
