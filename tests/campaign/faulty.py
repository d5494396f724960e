"""Helpers for tests in which a node's client meets a faulty peer, with every form of every fault. The client
must stay within limits of time and memory.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final

from protocol.commitments.atomic import TEMPORARY_PREFIX
from tests.campaign.peer_proxy import FORMS, MODES, Mode, PeerProxy

FAULTS: Final[list[tuple[Mode, str]]] = [
    (mode, form) for mode in MODES if mode != "honest" for form in FORMS.get(mode, ("",))
]
SLACK: Final = 4.0
"""Seconds added to a time limit, for other work and for a busy machine."""
PLENTY: Final = 60.0
"""A client's time limit, in seconds, for a peer whose fault does not make it wait: enough on any machine."""
MEMORY: Final = 1 << 24
"""Bytes that a client may allocate during a fault. The client's own limits are lower. Floods and bombs are
gigabytes or more.
"""


def make(proxy: PeerProxy, mode: Mode, form: str) -> None:
    """Give the peer the fault `mode`, in the form `form`, from the next request on. A two-faced peer lies on
    every second connection, beginning with the next one.
    """
    proxy.mode, proxy.form = mode, form or None
    if mode == "two-faced" and next(proxy.connections) % 2 == 0:
        next(proxy.connections)  # so that the next connection gets the false answers


def patience_with(mode: Mode, form: str, short: float) -> float:
    """A client's time limit, in seconds, for a peer with this fault: `short` if the fault makes the client
    wait, otherwise `PLENTY`.
    """
    return short if mode in ("silent", "trickling") or form in ("question", "body") else PLENTY


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Require that the block takes less than `seconds` + `SLACK`, and less memory than `MEMORY`."""
    tracemalloc.start()
    begun = monotonic()
    try:
        yield
        assert monotonic() - begun < seconds + SLACK
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def is_whole(blobs: Path) -> bool:
    """Whether a blob store has only whole blobs and no temporary files."""
    files = [path for path in blobs.rglob("*") if path.is_file()]
    return all(
        path.name == sha256(path.read_bytes()).hexdigest() and not path.name.startswith(TEMPORARY_PREFIX)
        for path in files
    )
