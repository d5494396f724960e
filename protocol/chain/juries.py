"""Juries: a seat that cannot fetch an item claims that the item is withheld, and jurors vote on the claim
(contracts/src/interfaces/IJuries.sol).

Jurors vote with `Audit.attest`, using the juror numbers of `protocol.dispute.juries`. `Audit.jury` shows the
votes.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.views import ItemClaim
from protocol.dispute.juries import Objection, Shown


class Juries(BoundContract):
    """The juries contract. A write that is out of order, early or late raises Reverted with the contract's
    own error.
    """

    def claim(self, task: int, seat: int, item: int) -> Receipt:
        """As the account of a seat or look that has not attested: claim that an item cannot be fetched. The
        account may do this at most `most_claims` times in one seat or look (protocol.dispute.juries). Locks
        an audit fee and a draw fee from the account's free balance, and requests the draw of the jury.
        """
        return self.write("claim", task, seat, item)

    def object(self, task: int, objection: Objection) -> Receipt:
        """As the claimant, once, within the move time after the vote: require every juror that voted yes to
        open a chunk.
        """
        return self.write("object", task, *objection)

    def open(self, task: int, juror: int, secret: bytes, digest: bytes, shown: Shown) -> Receipt:
        """As a juror that voted yes, by the claim's `until`: show the chunk that the objection names, and
        prove that both the item and the juror's digest contain it.
        """
        return self.write("open", task, juror, secret, digest, shown)

    def close(self, task: int) -> Receipt:
        """End the claim with the jury's verdict, once the verdict is final (IJuries.close)."""
        return self.write("close", task)

    def drop(self, task: int) -> Receipt:
        """End a claim that no jury will judge, because the task is no longer SUBMITTED or the jury's draw has
        lapsed. The claim's bond is returned.
        """
        return self.write("drop", task)

    def claim_of(self, task: int, block: BlockId = "latest") -> ItemClaim | None:
        """The task's claim that is not judged yet; None if there is none."""
        return ItemClaim.from_abi(self.read("claimOf", task, block=block))

    def ahead(self, tasks: Sequence[int]) -> None:
        """Prefetch the results of `claim_of` for several tasks with few requests. Call this only inside a view."""
        self.ask_ahead("claimOf", *([task] for task in tasks))
