"""What the HTTP server may show: the records of this solver's tasks, and the bundles it holds.

The node puts records here; the server's threads read. An app factory gets a shelf and nothing else of the node.
"""

from __future__ import annotations

from pathlib import Path

from protocol.replay import Replay
from solver.metrics import Metrics
from solver.record import Record


class Shelf:
    """Records by task, bundles by the SHA-256 of their manifest. Single assignments, so readers need no lock."""

    def __init__(self, bundles: Path, metrics: Metrics) -> None:
        self.metrics = metrics
        self.ready = False
        self._bundles = bundles
        self._records: dict[int, tuple[Record, Replay]] = {}

    def put(self, record: Record) -> None:
        """Show a task from now on."""
        self._records[record.task] = (record, record.replay())

    def record(self, task: int) -> Record | None:
        """The record of a task, or None if this solver does not hold it."""
        found = self._records.get(task)
        return None if found is None else found[0]

    def replay(self, task: int) -> Replay:
        """The replay that answers questions about a shown task; one thread at a time."""
        return self._records[task][1]

    def bundle_file(self, bundle: str, name: str) -> Path | None:
        """A file of a held bundle. `bundle` and `name` may come from anybody; nothing outside is ever named."""
        folder = (self._bundles / bundle).resolve()
        path = (folder / name).resolve()
        inside = folder.parent == self._bundles.resolve() and path.is_relative_to(folder)
        return path if inside and path.is_file() else None
