"""Progress commitments of one task: made beside the training, which never waits for a receipt.

One worker sends one transaction after the other, always up to the newest checkpoint asked for, with a consistency proof
from whatever root the chain then has (dispute.md section 2, "progress").
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from protocol.node.party.funds import require_free
from solver.context import Context
from solver.run_store import RunStore


class Committer:
    """Sends what `run_store` holds. The tree is the run store's, read at sizes that no longer change."""

    def __init__(self, context: Context, run_store: RunStore) -> None:
        self._context = context
        self._run_store = run_store
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="solver-commit")
        self._running: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a commitment is in progress."""
        return self._running is not None and not self._running.done()

    def offer(self, size: int) -> None:
        """Commit the first `size` checkpoints soon; skipped while an earlier commitment is in progress.

        Raises what the earlier one raised: Reverted if the market refuses this run.
        """
        if self.busy:
            return
        self.finish()
        # Announced before it is sent, so that anyone who sees the root on-chain can ask for what is under it.
        self._run_store.commit(size)
        self._running = self._worker.submit(self._progress, size)

    def finish(self) -> None:
        """Wait for what is in progress. Raises what it raised, once."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def submit(self, due: int) -> None:
        """Commit all K + 1 checkpoints soon and open the last one as the result; postponed while an earlier
        commitment is in progress. The `due` tokens (the stake less the released penalty) are brought into the vault
        if they are not free there. Raises as `offer` does, and NotEnoughTokens.
        """
        if self.busy:
            return
        self.finish()
        self._run_store.commit(self._run_store.size)
        self._running = self._worker.submit(self._submit, self._run_store.size, due)

    def close(self, wait: bool = True) -> None:
        """End the worker. A transaction that it has begun is still sent; `wait` waits for it."""
        self._worker.shutdown(wait=wait)

    def _proofs(self, size: int) -> tuple[bytes, list[bytes], list[bytes]]:
        """Root of the first `size` checkpoints, and the proof that the market requires with it."""
        client, tree = self._context.client, self._run_store.tree.at(size)
        with client.connection.view():  # after the receipt of the last commitment, so not behind it
            on_chain = client.market.task(self._run_store.task).size
        if on_chain == 0:
            return tree.root, tree.inclusion_path(0), []
        return tree.root, [], tree.consistency_proof(on_chain)

    def _progress(self, size: int) -> None:
        task = self._run_store.task
        root, first, consistency = self._proofs(size)
        receipt = self._context.client.market.progress(task, root, size, first, consistency)
        self._context.count("progress", receipt, task=task, size=size)

    def _submit(self, size: int, due: int) -> None:
        run_store, task = self._run_store, self._run_store.task
        root, first, consistency = self._proofs(size)
        result = run_store.roots()[-1]
        path = run_store.tree.at(size).inclusion_path(size - 1)
        require_free(self._context.client, due, f"for the stake of task {task}")
        receipt = self._context.client.market.submit(task, root, first, consistency, result, path)
        self._context.count("submit", receipt, task=task)
