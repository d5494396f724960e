"""Commitments go on from the root that the chain has when they are sent, not from that of the round that asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from time import monotonic, sleep
from types import SimpleNamespace
from typing import cast

from protocol.commitments import verify_consistency
from solver.committing import Committer
from solver.context import Context
from tests.unit.solver import tiny


class Chain:
    """A market of one task, whose calls read the newest block, or that of the thread's view."""

    def __init__(self) -> None:
        self.size, self.root = 0, b""
        self._pinned = local()

    @contextmanager
    def view(self) -> Iterator[None]:
        """Reads of this thread are of now as long as it lasts."""
        self._pinned.size = self.size
        yield
        del self._pinned.size

    def task(self, _task: int) -> SimpleNamespace:
        """Where it stands."""
        return SimpleNamespace(size=getattr(self._pinned, "size", self.size))

    def progress(
        self, _task: int, root: bytes, size: int, first: list[bytes], consistency: list[bytes]
    ) -> None:
        """What the contract checks (TaskMarket.progress)."""
        assert bool(first) == (self.size == 0)
        if self.size:
            verify_consistency(self.size, size, self.root, root, consistency)
        self.size, self.root = size, root


def test_a_commitment_that_is_asked_for_in_the_round_in_which_the_last_was_mined(tmp_path: Path) -> None:
    chain, run_store = Chain(), tiny.trained(tmp_path)
    client = SimpleNamespace(market=chain, connection=chain)
    context = cast(Context, SimpleNamespace(client=client, count=lambda *_what, **_about: None))
    committer = Committer(context, run_store)
    give_up = monotonic() + 20
    with chain.view():
        for size in (2, 4):
            committer.offer(size)
            while committer.busy:
                assert monotonic() < give_up
                sleep(0.001)
        committer.finish()
    assert chain.size == 4
    committer.close()
