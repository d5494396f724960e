"""The notes on tasks that were posted from a home folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.notes import note_of, posted, recall, remember, renumber
from protocol.chain.client import Client
from protocol.node.home import Home
from protocol.tasks.task import Terms
from tests.chain.trees import terms


def client(address: str = "0x" + "11" * 20) -> Client:
    """A stub client with the fields that a note needs."""
    connection = SimpleNamespace(chain_id=31337, genesis="0x" + "ab" * 32)
    market = SimpleNamespace(address="0x" + "cd" * 20)
    return cast(Client, SimpleNamespace(connection=connection, market=market, address=address))


def test_what_was_posted_is_noted_with_its_file(tmp_path: Path) -> None:
    home, file, asked = Home(tmp_path), tmp_path / "task.toml", terms()
    file.touch()
    assert posted(home, client(), 7) is None
    remember(home, client(), 7, file, asked)
    assert recall(home, client(), 7, client().address, asked) == file
    assert posted(home, client(), 7) == (client().address, asked)
    renumber(home, client(), {7: 8})
    for number in (7, 8):
        assert posted(home, client(), number) == (client().address, asked)
        assert recall(home, client(), number, client().address, asked) == file


def test_two_tasks_that_change_their_numbers_keep_their_notes(tmp_path: Path) -> None:
    home, files = Home(tmp_path), [tmp_path / "one.toml", tmp_path / "two.toml"]
    asked = [replace(terms(), bundle_hash=bytes([number]) * 32) for number in (1, 2)]
    for number, file, each in zip((7, 8), files, asked, strict=True):
        file.touch()
        remember(home, client(), number, file, each)

    def noted() -> list[Terms | None]:
        found = (posted(home, client(), number) for number in (7, 8, 9))
        return [None if one is None else one[1] for one in found]

    renumber(home, client(), {7: 8, 8: 9})
    assert noted() == [asked[0], *asked]
    renumber(home, client(), {8: 9, 9: 8})
    assert noted() == [asked[0], *reversed(asked)]
    for number in (7, 8, 9, 10):  # whatever the number, the file is the task's
        assert [recall(home, client(), number, client().address, each) for each in asked] == files
    assert recall(home, client(), 7, "0x" + "22" * 20, asked[0]) is None, "a stranger's"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"file": null}', '{"terms": {"program_id": 3}}', "\xff"]
)
def test_a_damaged_note_or_that_of_an_older_release_names_no_terms(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    note_of(home, client(), 7).write_text(text, "latin-1")
    assert posted(home, client(), 7) is None
