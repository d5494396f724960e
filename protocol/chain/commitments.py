"""Priority commitments, their bonds, and payments to seats after a conviction
(contracts/src/interfaces/ICommitments.sol).

A commitment is opened by `Game.challenge` or `Game.challenge_blind` or, after a conviction, by
`Commitments.open_late`. An argument `seat` is the number of a seat, or `NO_SEAT` (protocol.dispute.keys).
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sent


class Commitments(BoundContract):
    """The commitments contract. A write that is out of order, early or late raises Reverted with the
    contract's own error. Amounts are token units.
    """

    def bond(self, task: int, seat: int) -> int:
        """The bond that a commitment of the sender would lock now. It is higher while the task holds many
        bonds, except for an account's first commitment from a seat and for an UNPAID task.
        """
        return int(self.read("bondOf", task, seat, self._sender("bondOf").address))

    def commit(self, task: int, seat: int, commitment: bytes) -> Receipt:
        """Commit to a challenge (`protocol.dispute.keys.priority_commitment`) and lock the bond. `seat` is
        one of the sender's seats, or `NO_SEAT`.
        """
        return self.write_once("commit", task, seat, commitment)

    def committing(self, task: int, seat: int, commitment: bytes) -> bool:
        """Whether the commitment was sent before and not refused. If so, the bond is or will be locked."""
        return self.is_signed("commit", task, seat, commitment)

    def open_late(self, task: int, segment: int, salt: bytes, seat: int) -> Receipt:
        """Open a commitment after the task's conviction, within the opening period. The bond is returned. If
        `seat` names a seat, its account is also paid the cost of a game and the seat's fee. The seat must
        then have the segment, unless the commitment names no segment.
        """
        return self.write_once("openLate", task, segment, salt, seat)

    def forfeit(self, challenger: str, commitment: bytes) -> Receipt:
        """Burn the bond of a commitment that `challenger` made and did not open in time. `challenger` can be
        any account, not only the sender.
        """
        return self.write_once("forfeit", challenger, commitment)

    def forfeit_all(self, commitments: Sequence[tuple[str, bytes]]) -> list[Sent]:
        """Like `forfeit`, for several pairs of challenger and commitment at once, without waiting for a
        block. Calls that the contract refuses are not sent.
        """
        return self.hand_over([("forfeit", each) for each in commitments])

    def compensate(self, task: int, seat: int, game: int) -> Receipt:
        """After a conviction: pay a seat's account the cost of a game and the seat's fee, because the account
        played `game`. The game must be on one of the seat's segments or on none yet, and must not have been
        dismissed or dropped.
        """
        return self.write_once("compensate", task, seat, game)

    def pay_fee(self, task: int, seat: int) -> Receipt:
        """After a conviction: pay the fee of an attested seat that does not have the convicted segment and
        has not lost its lock.
        """
        return self.write_once("payFee", task, seat)

    def claims_until(self, task: int) -> int:
        """The last second, since 1970, in which seats can claim from the convicted stake. Raises Reverted if
        there is no conviction.
        """
        return int(self.read("claimsUntil", task))

    def held(self, task: int) -> int:
        """Number of the task's bonds: those of commitments that are neither opened nor forfeited, and those
        of games that are neither dismissed nor dropped.
        """
        return int(self.read("held", task))
