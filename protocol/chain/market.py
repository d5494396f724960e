"""The market: posting, bidding, progress, submission, settlement (contracts/src/interfaces/ITaskMarket.sol)."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.errors import Reverted
from protocol.chain.parameters import Parameters
from protocol.chain.receipts import Receipt
from protocol.chain.views import TaskStatus, TaskView
from protocol.tasks.task import Terms


class Market(BoundContract):
    """The task market. A write that is out of order, late or unpaid raises Reverted with the market's own
    error.
    """

    def post(self, terms: Terms, intent: str | None = None) -> tuple[int, Receipt]:
        """Post a task and lock its escrow. Returns the task's id and the receipt. With an `intent`, the task
        is posted only once, even across restarts.
        """
        receipt = self.write("post", terms.abi(), intent=intent)
        return int(self.event(receipt, "Posted").arguments["task"]), receipt

    def unfinished_posts(self) -> list[tuple[str, Terms]]:
        """The account's posts whose outcome nobody saw (`unfinished`): the intent and the terms of each."""
        return [(intent, Terms.from_abi(terms)) for intent, (terms,) in self.unfinished("post")]

    def bid(self, task: int, price: int) -> Receipt:
        """Bid a price, lower than the best bid by at least the minimum undercut (`protocol.tasks.bidding`),
        and lock the delay penalty.
        """
        return self.write_once("bid", task, price)

    def assign(self, task: int) -> Receipt:
        """After the bidding: make the best bidder the solver, or refund the submitter if nobody bid."""
        return self.write_once("assign", task)

    def cancel(self, task: int) -> Receipt:
        """As the submitter, before any bid: cancel the task. Its whole escrow is returned."""
        return self.write_once("cancel", task)

    def progress(
        self, task: int, root: bytes, size: int, first_path: Sequence[bytes], consistency: Sequence[bytes]
    ) -> Receipt:
        """Commit a longer segment tree."""
        return self.write_once("progress", task, root, size, list(first_path), list(consistency))

    def submit(
        self,
        task: int,
        root: bytes,
        first_path: Sequence[bytes],
        consistency: Sequence[bytes],
        result: bytes,
        result_path: Sequence[bytes],
    ) -> Receipt:
        """Commit the whole segment tree and open its last leaf as the result; lock the stake."""
        return self.write_once(
            "submit", task, root, list(first_path), list(consistency), result, list(result_path)
        )

    def expire(self, task: int) -> Receipt:
        """Expire the task: the solver missed the deadline."""
        return self.write_once("expire", task)

    def settle(self, task: int) -> Receipt:
        """Pay the solver and the verifiers, once the time for challenges is over, every seat is attested, and
        no game, look or accusation is open.
        """
        return self.write_once("settle", task)

    def void(self, task: int) -> Receipt:
        """End a task if one of its seats is still empty after all the draws that the task's escrow pays for."""
        return self.write_once("voidTask", task)

    def stall(self, task: int) -> Receipt:
        """After the stall period: give up a task whose seats have not all attested, for example because they
        were never drawn. The task becomes UNPAID, and its payments no longer follow its terms.
        """
        return self.write_once("stall", task)

    def close_stalled(self, task: int) -> Receipt:
        """End an UNPAID task (stalled, or with withheld data) that was not convicted in time."""
        return self.write_once("closeStalled", task)

    def burn_rest(self, task: int) -> Receipt:
        """Burn what is left of a convicted stake, once the time for claims on it is over
        (`Commitments.claims_until`).
        """
        return self.write_once("burnRest", task)

    def announce(self, url: str) -> Receipt:
        """Announce the URL at which the sender serves its data."""
        return self.write("announce", url)

    def endpoint_of(self, party: str) -> str:
        """The URL at which a party serves its data; empty if it has announced none."""
        return str(self.read("endpointOf", party))

    def task(self, task: int, block: BlockId = "latest") -> TaskView:
        """The state of a task."""
        return TaskView.from_abi(task, self.read("taskOf", task, block=block))

    def task_if_posted(self, task: int) -> TaskView | None:
        """The state of a task; None if there is no such task, for example because a re-organisation removed
        its post.
        """
        try:
            return self.task(task)
        except Reverted as error:
            if error.name != "UnknownTask":
                raise
            return None

    def statuses(self, tasks: Sequence[int], block: BlockId = "latest") -> list[TaskStatus]:
        """The statuses of several tasks; NONE for a task that does not exist. Inside a view, this sends few
        requests.
        """
        if self.connection.is_viewing:
            self.ask_ahead("statusOf", *([task] for task in tasks), block=block)
        return [TaskStatus(self.read("statusOf", task, block=block)) for task in tasks]

    def ahead(self, tasks: Sequence[int]) -> None:
        """Prefetch the results of `task` and `terms` for several tasks with few requests. Call this only
        inside a view.
        """
        for function in ("taskOf", "termsOf"):
            self.ask_ahead(function, *([task] for task in tasks))

    def terms(self, task: int) -> Terms:
        """The terms of a task."""
        return Terms.from_abi(self.read("termsOf", task))

    def tasks(self) -> int:
        """Number of tasks. Ids run from 1 to this number."""
        return int(self.read("tasks"))

    def parameters(self) -> Parameters:
        """The deployment's fixed parameters."""
        return Parameters.from_abi(self.read("parameters"))
