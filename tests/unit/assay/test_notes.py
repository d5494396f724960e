"""The note on the file that a task came from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from assay.notes import note_of, recall, remember
from protocol.chain.client import Client
from protocol.node.home import Home


def client(address: str = "0x" + "11" * 20) -> Client:
    """A stub client with the fields that a note needs."""
    connection = SimpleNamespace(chain_id=31337, genesis="0x" + "ab" * 32)
    market = SimpleNamespace(address="0x" + "cd" * 20)
    return cast(Client, SimpleNamespace(connection=connection, market=market, address=address))


def test_the_file_of_a_task_is_noted_beside(tmp_path: Path) -> None:
    home, file = Home(tmp_path), tmp_path / "task.toml"
    file.touch()
    remember(home, client(), 7, file)
    assert recall(home, client(), 7) == file
    assert note_of(home, client(), 7).is_file()
