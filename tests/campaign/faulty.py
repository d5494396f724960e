"""What a test of a node's client does with each fault of a peer: every form, a time limit, and bounded memory."""

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
"""Seconds on top of a time limit for everything else, on a busy machine."""
MEMORY: Final = 1 << 24
"""Bytes that a client may take for a fault. Its own limits are below; what floods or unpacks is gigabytes."""


def make(proxy: PeerProxy, mode: Mode, form: str) -> None:
    """The peer is faulty in this way from the next connection on."""
    proxy.mode, proxy.form = mode, form or None
    if mode == "two-faced" and next(proxy.connections) % 2 == 0:
        next(proxy.connections)  # the next one is told something else


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """What is done within takes about so long at most, and not much memory."""
    tracemalloc.start()
    begun = monotonic()
    try:
        yield
        assert monotonic() - begun < seconds + SLACK
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def is_whole(blobs: Path) -> bool:
    """Whether a blob store has nothing but whole blobs, and no file that was begun."""
    files = [path for path in blobs.rglob("*") if path.is_file()]
    return all(
        path.name == sha256(path.read_bytes()).hexdigest() and not path.name.startswith(TEMPORARY_PREFIX)
        for path in files
    )
