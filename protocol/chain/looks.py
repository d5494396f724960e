"""Informing: half of a seat's lock for its salt (contracts/src/interfaces/ILooks.sol)."""

from __future__ import annotations

from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt


class Looks(BoundContract):
    """Every write raises Reverted with the contract's own error when it is out of order, early or late."""

    def commit_informing(self, commitment: bytes) -> Receipt:
        """Commit to `inform` in a later block (`protocol.dispute.keys.informing_commitment`)."""
        return self.write("commitInforming", commitment)

    def inform(self, task: int, seat: int, digest: bytes, salt: bytes) -> Receipt:
        """Show the salt of an attested seat: half of its lock is the sender's, who has committed to it before."""
        return self.write("inform", task, seat, digest, salt)

    def committed_in(self, commitment: bytes) -> int:
        """The block in which the sender committed; 0 if it has not, or has informed."""
        return int(self.read("committedIn", self._sender("committedIn").address, commitment))
