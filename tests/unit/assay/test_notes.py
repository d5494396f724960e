"""The note on terms that are being posted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.notes import Posting, folder_of, is_posting, note_of, recall, remember
from protocol.chain.client import Client
from protocol.node.home import Home
from tests.chain.trees import terms


def client(address: str = "0x" + "11" * 20) -> Client:
    """A stub client with the fields that a note needs."""
    connection = SimpleNamespace(chain_id=31337, genesis="0x" + "ab" * 32)
    market = SimpleNamespace(address="0x" + "cd" * 20)
    return cast(Client, SimpleNamespace(connection=connection, market=market, address=address))


def posting(home: Home, **changed: object) -> Posting:
    asked = {
        "client": client(),
        "bundle_hash": b"\1" * 32,
        "base": "http://a",
        "split": (10, 40, 1),
        "given": {"budget": 5},
    }
    return Posting(home, **(asked | changed))  # type: ignore[arg-type]


def test_terms_come_back_as_they_were(tmp_path: Path) -> None:
    home, asked = Home(tmp_path), terms()
    assert posting(home).read() is None
    posting(home).write(asked)
    assert is_posting(home, client())
    assert posting(home).read() == asked
    posting(home).write(replace(asked, clock=asked.clock + 1))
    assert posting(home).read() == replace(asked, clock=asked.clock + 1)
    posting(home).end()
    posting(home).end()
    assert posting(home).read() is None
    assert not is_posting(home, client())


@pytest.mark.parametrize(
    "changed",
    [
        {"client": client("0x" + "22" * 20)},
        {"bundle_hash": b"\2" * 32},
        {"base": "http://b"},
        {"split": (20, 20, 1)},
        {"given": {"budget": 6}},
        {"given": {}},
    ],
    ids=["account", "bundle", "address", "segments", "terms", "no terms"],
)
def test_another_posting_has_another_note(tmp_path: Path, changed: dict[str, object]) -> None:
    home = Home(tmp_path)
    posting(home).write(terms())
    assert posting(home, **changed).read() is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"program_id": 3}', "\xff"])
def test_a_damaged_note_is_none(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    posting(home).write(terms())
    (file,) = folder_of(home, client()).iterdir()
    file.write_text(text, "latin-1")
    assert posting(home).read() is None


def test_the_file_of_a_task_is_noted_beside(tmp_path: Path) -> None:
    home, file = Home(tmp_path), tmp_path / "task.toml"
    file.touch()
    remember(home, client(), 7, file)
    assert recall(home, client(), 7) == file
    assert note_of(home, client(), 7).is_file()
    assert not is_posting(home, client())
