"""Notes in a submitter's home folder. They record each of the submitter's tasks: its submitter, its terms, and
the file that it came from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from protocol.chain.client import Client
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home
from protocol.tasks.task import Terms, TermsError

ROOTS = ("program_id", "constants_root", "initial_state", "bundle_hash")
"""Those fields of the terms whose values are bytes; a note stores them as hexadecimal text."""


def remember(home: Home, client: Client, task: int, file: Path | None, terms: Terms) -> None:
    """Record which task the client's account has posted: its terms, and the file that it came from, so that
    `assay result` and `assay watch` can run the evaluation that this file contains. `file` is None for a task
    posted from Python.
    """
    values = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(terms).items()
    }
    noted = None if file is None else str(file.absolute())
    note = {"file": noted, "submitter": client.address, "terms": values}
    write_atomically(note_of(home, client, task), json.dumps(note).encode())


def posted(home: Home, client: Client, task: int) -> tuple[str, Terms] | None:
    """The submitter and the terms of the task that was posted from this home folder with this number. None if
    there is no readable note, or if the note is from an older release, whose notes name only the file.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, TermsError):
        note = json.loads(note_of(home, client, task).read_bytes())
        values = note["terms"]
        return note["submitter"], Terms(**{**values, **{name: bytes.fromhex(values[name]) for name in ROOTS}})
    return None


def number_noted(home: Home, client: Client, submitter: str, terms: Terms) -> int | None:
    """A number under which the home folder has noted the task with this submitter and these terms (`posted`);
    None if there is none.
    """
    numbers = (int(note.stem) for note in folder_of(home, client).glob("*.json") if note.stem.isdecimal())
    return next((one for one in numbers if posted(home, client, one) == (submitter, terms)), None)


def renumber(home: Home, client: Client, numbers: Mapping[int, int]) -> None:
    """Record that tasks have other numbers now. `numbers` maps the number under which a task was noted to its
    new number. An old note stays, because a re-organisation may give the old number back. It is replaced only
    if its number is the new number of another task.
    """
    texts = {number: note_of(home, client, task).read_bytes() for task, number in numbers.items()}
    for number, text in texts.items():
        write_atomically(note_of(home, client, number), text)


def recall(home: Home, client: Client, task: int, submitter: str, terms: Terms) -> Path | None:
    """The file that a task came from. The task may be noted under another number. None if the task was not
    submitted from this home folder, if it was posted from Python, or if the file no longer exists.
    """
    noted_as = posted(home, client, task)
    if noted_as != (submitter, terms):
        other = number_noted(home, client, submitter, terms)
        if other is None and noted_as is not None:
            return None
        task = task if other is None else other
    note = note_of(home, client, task)
    if not note.is_file():
        return None
    noted = json.loads(note.read_text())["file"]
    return Path(noted) if noted is not None and Path(noted).is_file() else None


def note_of(home: Home, client: Client, task: int) -> Path:
    """The path of the note on a task that was posted with this number."""
    return folder_of(home, client) / f"{task}.json"


def folder_of(home: Home, client: Client) -> Path:
    """The folder that holds a deployment's notes."""
    connection = client.connection
    chain = f"{connection.chain_id}-{connection.genesis[2:10]}-{client.market.address[2:10]}"
    return home.folder("submitted", chain)
