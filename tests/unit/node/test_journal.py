"""The journal's answers about intents with several attempts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.connection import Connection
from protocol.chain.idempotency import Idempotency
from protocol.chain.journal import Entry, Journal, Status

CALL = "Vault.deposit(5)"
INTENT = f"{CALL}:1"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal with two attempts of an intent at one nonce; the second one offers a higher fee."""
    made = Journal(tmp_path / "journal.sqlite")
    for hash_ in ("0x1", "0x2"):
        made.write([attempt(hash_, 7)])
    yield made
    made.close()


def attempt(hash_: str, nonce: int, intent: str = INTENT) -> Entry:
    return Entry(hash_, intent, "deposit", nonce, b"raw", Status.PENDING, None)


def attempts(journal: Journal, intent: str = INTENT) -> list[str]:
    """The hashes of an intent's attempts that are mined or may be mined."""
    return [entry.hash for entry in journal.of_intent(intent)]


def test_when_one_attempt_has_reverted_the_others_of_its_nonce_do_not_count(journal: Journal) -> None:
    assert attempts(journal) == ["0x1", "0x2"]
    journal.mark("0x2", Status.FAILED, 100)
    assert attempts(journal) == []
    assert [entry.hash for entry in journal.reverted(INTENT)] == ["0x2"]
    journal.write([attempt("0x3", 8), attempt("0x4", 7, "another")])
    assert attempts(journal) == ["0x3"]
    assert attempts(journal, "another") == ["0x4"]


def test_when_the_reverted_attempt_is_pending_again_all_count(journal: Journal) -> None:
    journal.mark("0x2", Status.FAILED, 100)
    journal.mark("0x2", Status.PENDING)
    assert attempts(journal) == ["0x1", "0x2"]


def test_a_call_whose_replacement_reverted_is_not_taken_over(journal: Journal) -> None:
    connection = cast(Connection, SimpleNamespace(receipt=lambda _hash: None))
    idempotency = Idempotency(journal, connection)
    assert idempotency.unfinished(CALL) == INTENT
    journal.mark("0x2", Status.FAILED, 100)
    assert idempotency.unfinished(CALL) is None
    with idempotency.intent(CALL) as intent:
        assert intent != INTENT
