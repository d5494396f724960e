"""Sends one task's progress commitments and its submission in the background, so that training never waits
for a receipt.

One worker sends one transaction after the other. Each transaction commits to all checkpoints that were kept
when it was offered. It carries a consistency proof from the root that is on the chain when the proof is made.
If another root replaces that one before the transaction is mined, the proof is made again. The first
transaction carries no consistency proof. It proves instead that the run begins with the initial state
(dispute.md section 2, "progress").
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.node.party.funds import require_free
from solver.context import Context
from solver.errors import StakeNotDeposited
from solver.run_store import RunStore


class Committer:
    """Commits the checkpoints of `run_store` in a thread. This thread reads only those parts of the run's
    segment tree that no longer change.
    """

    def __init__(self, context: Context, run_store: RunStore) -> None:
        self._context = context
        self._run_store = run_store
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="solver-commit")
        self._running: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a commitment is being sent."""
        return self._running is not None and not self._running.done()

    def offer(self, size: int) -> None:
        """Commit the first `size` checkpoints soon. Does nothing while an earlier commitment is being sent.

        Raises the earlier commitment's error, such as Reverted if the market refuses this run.
        """
        if self.busy:
            return
        self.finish()
        # Served before it is sent, so that anyone who sees the root on-chain can request the data under it.
        self._run_store.commit(size)
        self._running = self._worker.submit(self._progress, size)

    def finish(self) -> None:
        """Wait for the commitment that is being sent. Raises its error, once."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def submit(self, due: int) -> None:
        """Commit all K + 1 checkpoints soon and open the last one as the result. Does nothing while an
        earlier transaction is being sent. `due` token units (the stake less the released penalty) are
        deposited if they are not free in the vault. Raises the error of the earlier transaction, such as
        NotEnoughTokens, or Reverted if the market refuses this run.
        """
        if self.busy:
            return
        self.finish()
        self._run_store.commit(self._run_store.size)
        self._running = self._worker.submit(self._submit, self._run_store.size, due)

    def close(self, wait: bool = True) -> None:
        """End the worker. A transaction that it has begun is still sent; with `wait`, wait for that."""
        self._worker.shutdown(wait=wait)

    def _on_chain(self) -> int:
        """The number of checkpoints that are committed on the chain."""
        client = self._context.client
        with client.connection.view():  # the node has the last commitment, because its receipt was read
            return client.market.task(self._run_store.task).size

    def _extend(
        self, size: int, send: Callable[[bytes, list[bytes], list[bytes]], Receipt]
    ) -> Receipt | None:
        """Send a commitment to the first `size` checkpoints: their root, and the proof that the market
        requires with it. The first commitment has the path of checkpoint 0 and an empty consistency proof;
        later ones have a consistency proof and an empty path. Returns None if that many checkpoints are
        committed already.

        After the proof is made, an earlier commitment may still be mined, for example after NotMined or a
        restart. Then the market reverts, because the proof begins at the wrong size, and the proof is made
        again. If the market reverts although the committed size has not changed, raises Reverted.
        """
        tree = self._run_store.tree.at(size)
        while (before := self._on_chain()) < size:
            first = [] if before else tree.inclusion_path(0)
            consistency = tree.consistency_proof(before) if before else []
            try:
                return send(tree.root, first, consistency)
            except Reverted as error:
                if self._on_chain() == before:
                    raise
                self._context.log.info("proved again", task=self._run_store.task, error=error.name)
        return None

    def _progress(self, size: int) -> None:
        market, task = self._context.client.market, self._run_store.task
        receipt = self._extend(
            size, lambda root, first, consistency: market.progress(task, root, size, first, consistency)
        )
        if receipt is not None:
            self._context.count("progress", receipt, task=task, size=size)

    def _submit(self, size: int, due: int) -> None:
        market, run_store, task = self._context.client.market, self._run_store, self._run_store.task
        result = run_store.roots()[-1]
        path = run_store.tree.at(size).inclusion_path(size - 1)
        self._deposit(due)
        receipt = self._extend(
            size,
            lambda root, first, consistency: market.submit(task, root, first, consistency, result, path),
        )
        if receipt is not None:
            self._context.count("submit", receipt, task=task)

    def _deposit(self, due: int) -> None:
        """Have `due` token units free in the vault. Raises StakeNotDeposited, not Reverted, if a deposit is
        refused, because the refusal says nothing about the run.
        """
        task = self._run_store.task
        try:
            require_free(self._context.client, due, f"for the stake of task {task}")
        except Reverted as error:
            raise StakeNotDeposited(
                f"deposit of the stake of task {task}",
                expected="the token and the vault to accept it",
                got=error.got,
                remedy="none needed: it is tried again",
            ) from error
