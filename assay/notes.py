"""Notes in a submitter's home folder. They record which file each of the submitter's tasks came from, and the
terms of tasks that are being posted.

Derived terms may differ a minute later, because prices move. So they are noted before anything is sent. When
a command is repeated after an interruption, it then finds the task or the transaction of the first attempt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from protocol.chain.client import Client
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home
from protocol.tasks.task import Terms, TermsError

ROOTS = ("program_id", "constants_root", "initial_state", "bundle_hash")
"""Those fields of the terms whose values are bytes; a note stores them as hexadecimal text."""


def remember(home: Home, client: Client, task: int, file: Path | None) -> None:
    """Note which file a task came from, so that `assay result` and `assay watch` can run the evaluation that
    this file contains. `file` is None for a task posted from Python.
    """
    noted = None if file is None else str(file.absolute())
    write_atomically(note_of(home, client, task), json.dumps({"file": noted}).encode())


def recall(home: Home, client: Client, task: int) -> Path | None:
    """The file that a task came from. None if the task was not submitted from this home folder, was posted
    from Python, or if the file no longer exists.
    """
    note = note_of(home, client, task)
    if not note.is_file():
        return None
    noted = json.loads(note.read_text())["file"]
    return Path(noted) if noted is not None and Path(noted).is_file() else None


def note_of(home: Home, client: Client, task: int) -> Path:
    """The path of the note that says which file a task came from."""
    return folder_of(home, client) / f"{task}.json"


def folder_of(home: Home, client: Client) -> Path:
    """The folder that holds a deployment's notes."""
    connection = client.connection
    chain = f"{connection.chain_id}-{connection.genesis[2:10]}-{client.market.address[2:10]}"
    return home.folder("submitted", chain)


class Posting:
    """The note of terms that are being posted. It belongs to one account, one bundle at one address, the
    numbers in `split`, which say how the steps are split up, and the terms given in the task file.
    """

    def __init__(
        self,
        home: Home,
        client: Client,
        bundle_hash: bytes,
        base: str,
        split: Sequence[int],
        given: Mapping[str, int],
    ) -> None:
        asked = [client.address, bundle_hash.hex(), base, list(split), sorted(given.items())]
        name = sha256(json.dumps(asked).encode()).hexdigest()[:32]
        self._file = folder_of(home, client) / f"posting-{name}.json"

    def write(self, terms: Terms) -> None:
        """Note the terms, before they are sent."""
        values = {
            name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(terms).items()
        }
        write_atomically(self._file, json.dumps(values).encode())

    def read(self) -> Terms | None:
        """The terms that an interrupted command noted. None if there is no readable note; the terms are then
        derived again.
        """
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, TermsError):
            values = json.loads(self._file.read_bytes())
            return Terms(**{**values, **{name: bytes.fromhex(values[name]) for name in ROOTS}})
        return None

    def end(self) -> None:
        """Delete the note, once the task with these terms is known."""
        self._file.unlink(missing_ok=True)


def is_posting(home: Home, client: Client) -> bool:
    """Whether an interrupted command has noted terms. If so, that command may have locked the escrow for
    these terms.
    """
    return any(folder_of(home, client).glob("posting-*.json"))
