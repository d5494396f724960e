"""Priority commitments with their bonds, and what a conviction pays to seats
(contracts/src/interfaces/ICommitments.sol).

The game opens a commitment (`Game.challenge`); after a conviction it is opened here. A seat is its number, or
`NO_SEAT` (protocol.dispute.keys).
"""

from __future__ import annotations

from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt


class Commitments(BoundContract):
    """Every write raises Reverted with the contract's own error when it is out of order, early or late. Amounts are
    token units.
    """

    def bond(self, task: int, seat: int) -> int:
        """What a commitment of the sender would lock now: more for those without a seat while many are held."""
        return int(self.read("bondOf", task, seat, self._sender("bondOf").address))

    def commit(self, task: int, seat: int, commitment: bytes) -> Receipt:
        """Commit to a challenge (`protocol.dispute.keys.priority_commitment`) and lock the bond. `seat` is one of the
        sender's own.
        """
        return self.write_once("commit", task, seat, commitment)

    def committing(self, task: int, seat: int, commitment: bytes) -> bool:
        """Whether the commitment was sent before and not refused: its bond is locked, or about to be."""
        return self.is_signed("commit", task, seat, commitment)

    def open_late(self, task: int, segment: int, salt: bytes, seat: int) -> Receipt:
        """After the task's conviction, within the opening period: take the bond back, and with a seat that has the
        segment its cost and fee.
        """
        return self.write_once("openLate", task, segment, salt, seat)

    def forfeit(self, challenger: str, commitment: bytes) -> Receipt:
        """Burn the bond of any commitment that was not opened in time."""
        return self.write_once("forfeit", challenger, commitment)

    def compensate(self, task: int, seat: int, game: int) -> Receipt:
        """After the conviction: pay the seat's account cost and fee for its game on a segment of the seat."""
        return self.write_once("compensate", task, seat, game)

    def pay_fee(self, task: int, seat: int) -> Receipt:
        """After the conviction: pay the fee of an attested seat without the convicted segment."""
        return self.write_once("payFee", task, seat)

    def claims_until(self, task: int) -> int:
        """Last second, since 1970, in which the convicted stake pays seats. Raises Reverted without a conviction."""
        return int(self.read("claimsUntil", task))

    def held(self, task: int) -> int:
        """Bonds of the task: of commitments neither opened late nor forfeited, and of games not dismissed."""
        return int(self.read("held", task))
