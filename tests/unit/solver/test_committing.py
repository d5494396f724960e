"""A commitment extends the root that the chain has when the commitment is sent, not the root that the chain
had in the round that asked for the commitment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from time import monotonic, sleep
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.errors import Reverted
from protocol.commitments import ProgressTree, ProofError, verify_consistency
from protocol.node.party.funds import NotEnoughTokens
from solver.committing import Committer
from solver.context import Context
from solver.run_store import RunStore
from tests.unit.solver import tiny

DUE = 7
"""Units that must be free for a submission: the stake less the penalty."""


class Chain:
    """A market with one task. Calls read the newest block, or the block of the thread's view."""

    def __init__(self) -> None:
        self.size, self.root = 0, b""
        self.free, self.held = 0, 0
        self._pinned = local()

    @contextmanager
    def view(self) -> Iterator[None]:
        """Pin the reads of this thread to the current block."""
        self._pinned.size = self.size
        yield
        del self._pinned.size

    def task(self, _task: int) -> SimpleNamespace:
        """The task's view."""
        return SimpleNamespace(size=getattr(self._pinned, "size", self.size))

    def progress(
        self, _task: int, root: bytes, size: int, first: list[bytes], consistency: list[bytes]
    ) -> None:
        """Check what the contract checks (TaskMarket.progress), and keep the root and the size."""
        assert bool(first) == (self.size == 0)
        assert size > self.size
        if self.size:
            verify_consistency(self.size, size, self.root, root, consistency)
        self.size, self.root = size, root

    def submit(
        self,
        task: int,
        root: bytes,
        first: list[bytes],
        consistency: list[bytes],
        _result: bytes,
        _path: list[bytes],
    ) -> None:
        """Submit; the stake must be free (TaskMarket.submit)."""
        assert self.free >= DUE
        self.progress(task, root, tiny.SEGMENTS + 1, first, consistency)

    def fund(self, amount: int) -> None:
        """Move held tokens into the vault until `amount` are free."""
        self.held -= amount - self.free
        self.free = amount


class Behind(Chain):
    """A chain with earlier commitments that are not yet mined. Just before each new transaction, it mines one
    of them: a commitment to `tree` at the next of the given sizes.

    It refuses a commitment with a false proof.
    """

    def __init__(self, tree: ProgressTree, *sizes: int) -> None:
        super().__init__()
        self.tree, self.sizes, self.sent = tree, list(sizes), 0

    def mine(self) -> None:
        """Mine the next of the earlier commitments."""
        if self.sizes:
            self.size = self.sizes.pop(0)
            self.root = self.tree.at(self.size).root

    def progress(
        self, _task: int, root: bytes, size: int, first: list[bytes], consistency: list[bytes]
    ) -> None:
        self.sent += 1
        self.mine()
        try:
            super().progress(_task, root, size, first, consistency)
        except (AssertionError, ProofError) as error:
            raise Reverted("TaskMarket", "InconsistentRoot", {}) from error


def committer_on(chain: Chain, run_store: RunStore) -> Committer:
    client = SimpleNamespace(
        market=chain,
        connection=chain,
        address="me",
        tokens=lambda _account: (chain.free, chain.held),
        fund=chain.fund,
    )
    log = SimpleNamespace(info=lambda *_what, **_about: None)
    context = cast(Context, SimpleNamespace(client=client, count=lambda *_what, **_about: True, log=log))
    return Committer(context, run_store)


def done(committer: Committer) -> None:
    give_up = monotonic() + 20
    while committer.busy:
        assert monotonic() < give_up
        sleep(0.001)


def test_a_commitment_that_is_asked_for_in_the_round_in_which_the_last_was_mined(tmp_path: Path) -> None:
    chain = Chain()
    committer = committer_on(chain, tiny.trained(tmp_path))
    with chain.view():
        for size in (2, 4):
            committer.offer(size)
            done(committer)
        committer.finish()
    assert chain.size == 4
    committer.close()


def test_a_submission_waits_for_its_stake_and_brings_it_in(tmp_path: Path) -> None:
    chain = Chain()
    committer = committer_on(chain, tiny.trained(tmp_path))
    chain.free, chain.held = DUE - 2, 1
    for _ in range(2):
        committer.submit(DUE)
        done(committer)
        with pytest.raises(NotEnoughTokens, match="for the stake of task 7"):
            committer.finish()
    assert chain.size == 0
    chain.held = 2
    committer.submit(DUE)
    committer.finish()
    assert (chain.size, chain.free, chain.held) == (tiny.SEGMENTS + 1, DUE, 0)
    committer.close()


@pytest.mark.parametrize("mined", [0, 1])
def test_a_proof_that_an_earlier_commitment_has_made_stale_is_made_again(tmp_path: Path, mined: int) -> None:
    run_store = tiny.trained(tmp_path)
    chain = Behind(run_store.tree, mined, 2, 3)
    chain.mine()
    chain.free = DUE
    committer = committer_on(chain, run_store)
    committer.submit(DUE)
    committer.finish()
    assert (chain.size, chain.sent) == (tiny.SEGMENTS + 1, 3)
    committer.close()


def test_nothing_is_sent_for_checkpoints_that_an_earlier_commitment_has_covered(tmp_path: Path) -> None:
    run_store = tiny.trained(tmp_path)
    chain = Behind(run_store.tree, 1, 3)
    chain.mine()
    committer = committer_on(chain, run_store)
    committer.offer(2)
    committer.finish()
    assert (chain.size, chain.sent) == (3, 1)
    committer.close()


def test_a_commitment_that_is_refused_at_an_unchanged_size_is_not_repeated(tmp_path: Path) -> None:
    run_store = tiny.trained(tmp_path)
    chain = Behind(run_store.tree, 1)
    chain.mine()
    chain.root, chain.free = bytes(32), DUE
    committer = committer_on(chain, run_store)
    committer.submit(DUE)
    with pytest.raises(Reverted, match="InconsistentRoot"):
        committer.finish()
    assert chain.sent == 1
    committer.close()
