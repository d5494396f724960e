"""Migrations of the solver's database from one format to the next.

The formats, with the commits that introduced them, are listed in `tests/vectors/README.md`.
"""

from __future__ import annotations

from typing import Final

from protocol.node.migrations import Execute, Migration

LEDGER: Final = """
CREATE TABLE flows (
    block INTEGER NOT NULL, place INTEGER NOT NULL, time INTEGER NOT NULL, task INTEGER NOT NULL, kind TEXT NOT NULL,
    units TEXT NOT NULL, lock INTEGER NOT NULL, transaction_hash TEXT NOT NULL, PRIMARY KEY (block, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
    transaction_hash TEXT PRIMARY KEY, nonce INTEGER NOT NULL, block INTEGER NOT NULL, time INTEGER NOT NULL,
    task INTEGER NOT NULL, what TEXT NOT NULL, succeeded INTEGER NOT NULL, gas INTEGER NOT NULL, price TEXT NOT NULL,
    fee TEXT NOT NULL, value TEXT NOT NULL, credit TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE booked (
    one INTEGER PRIMARY KEY CHECK (one = 1), block INTEGER NOT NULL, time INTEGER NOT NULL, nonce INTEGER NOT NULL
) STRICT;
"""
"""The ledger's tables. Amounts are stored as text: SQLite's integers end at 2^63 - 1, and that many token
units are only 9.2 tokens.
"""


def _keep_a_ledger(execute: Execute) -> None:
    for statement in filter(str.strip, LEDGER.split(";")):
        execute(statement)


MIGRATIONS: Final[tuple[Migration, ...]] = (
    Migration(1, "a ledger: tokens by the vault's events, coin by receipts", _keep_a_ledger),
)
