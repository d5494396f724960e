"""The traces that a task's solver has served in games, on disk while the task lasts (dispute.md section 6).

A solver may stop serving a trace once a move has made it impossible to demand that trace. A game's memory
ends with the process, or earlier (`ChallengeDriver.let_go`), so a trace is kept here before a move is made
with it. A trace is kept as its list of leaves, and only if the list gives a root that the solver has posted.
A game keeps at most nine lists for its step, because calls are at most eight deep. Each list is as long as
the trace of the program that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protocol.commitments.atomic import write_atomically
from protocol.commitments.hashing import HASH_BYTES


class ServedTraces:
    """A `protocol.dispute.revealed.LeafStore` below `folder`: one file for each root, the leaves one after the other.
    Callable from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, root: bytes, size: int, /) -> Sequence[bytes] | None:
        """The `size` leaves kept under a root; None if no leaves, or not exactly `size` leaves, are kept
        under it. Raises OSError.
        """
        path = self._path(root)
        if not path.is_file() or path.stat().st_size != size * HASH_BYTES:
            return None
        data = path.read_bytes()
        return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]

    def put(self, root: bytes, leaves: Sequence[bytes], /) -> None:
        """Keep the leaves of the trace with this root. Raises OSError."""
        write_atomically(self._path(root), b"".join(leaves))

    def _path(self, root: bytes) -> Path:
        return self._folder / root.hex()
