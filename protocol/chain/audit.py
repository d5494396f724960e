"""The audit board: registered verifiers, draws of seats, attestations (contracts/src/interfaces/IAuditBoard.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from protocol.beacon.bn254 import Hints
from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.views import NOBODY, AuditView, JuryView, Offer, PendingDraw, Registration, Seat


class Audit(BoundContract):
    """The audit board. A write that is out of order, early or late raises Reverted with the board's own
    error.
    """

    def register(self, level: int, offer: Offer) -> Receipt:
        """Lock a stake of 2^level units (level at most 15), so that the account can be drawn for tasks posted
        from now on.
        """
        return self.write("register", level, astuple(offer))

    def resign(self) -> Receipt:
        """Exclude the account from all draws requested from now on."""
        return self.write("resign")

    def leave(self) -> Receipt:
        """Free the stake of a resigned account, once the unbonding period is over and the account has no seat."""
        return self.write("quit")

    def resume(self) -> Receipt:
        """End a suspension: refill the stake from the free balance. The account can then be drawn again."""
        return self.write("resume")

    def redraw(self, task: int) -> Receipt:
        """Request another draw for those of the task's seats or looks that have not attested in time."""
        return self.write("redraw", task)

    def lapse(self, task: int) -> Receipt:
        """Cancel a draw that was not executed within the stall period after its round. It must be a draw for
        the task's looks, or for a jury that a look requested. This ends the task's looks and the jury.
        """
        return self.write("lapse", task)

    def draw(self, task: int, signature: bytes, hints: Hints) -> Receipt:
        """Execute the task's draw, which must be the first in the queue. `signature` (64 bytes) is the
        beacon's signature of the draw's round, and `hints` are those for the round's message.
        `protocol.node.party.rounds` executes the first draw in the queue, whichever task it is for.
        """
        return self.write("draw", task, signature, hints)

    def attest(self, task: int, seat: int, digest: bytes, salt_hash: bytes) -> Receipt:
        """Attest that the account replayed the seat's segments, challenged any that differ from the
        commitment, and has the result. `digest` covers all replayed states (audit.md section 4), and
        `salt_hash` is the keccak256 of the seat's salt. Both have 32 bytes.

        For a look, `seat` is the look's number, and the attestation covers the look's one segment. For a
        juror, `seat` is the juror's number. The attestation then says that the juror has the item
        (`protocol.dispute.juries`) or, if both values are zeros, that the juror could not fetch it.
        """
        return self.write("attest", task, seat, digest, salt_hash)

    def attestation(self, task: int, seat: int, block: BlockId = "latest") -> bytes | None:
        """The word that the board stores for a seat's attestation (`protocol.dispute.keys.attestation_word`);
        None if the seat has not attested, or if the juror voted no.
        """
        word = bytes(self.read("attestationOf", task, seat, block=block))
        return word if any(word) else None

    def release(self, task: int, seat: int) -> Receipt:
        """Release the account of a seat, look or juror, so that it can be drawn again. The task must no
        longer be SUBMITTED.
        """
        return self.write_once("release", task, seat)

    def registered(self) -> int:
        """Number of registered accounts that have not resigned. Posting a task requires at least one."""
        return int(self.read("registered"))

    def registration(self, account: str, block: BlockId = "latest") -> Registration | None:
        """An account's registration; None if it has none or has left."""
        found = Registration.from_abi(self.read("registrationOf", account, block=block))
        return None if found.account == NOBODY else found

    def audit(self, task: int, block: BlockId = "latest") -> AuditView:
        """The state of a task's draws."""
        return AuditView.from_abi(self.read("auditOf", task, block=block))

    def ahead(self, tasks: Sequence[int]) -> None:
        """Prefetch the results of `audit`, `seats` and `looks` for several tasks with few requests. Call this
        only inside a view.
        """
        for function in ("auditOf", "seatsOf", "looksOf"):
            self.ask_ahead(function, *([task] for task in tasks))

    def seats(self, task: int, block: BlockId = "latest") -> list[Seat]:
        """A task's seats, in order. The list is empty before the task's first draw."""
        found = self.read("seatsOf", task, block=block)
        return [Seat.from_abi(number, values) for number, values in enumerate(found)]

    def seat(self, task: int, number: int, block: BlockId = "latest") -> Seat:
        """One seat, look or juror of a task, by its number. It is empty (`Seat.is_empty`) before its draw,
        and if the number does not exist.
        """
        return Seat.from_abi(number, self.read("seatOf", task, number, block=block))

    def looks(self, task: int, block: BlockId = "latest") -> list[Seat]:
        """A task's looks for which an account was drawn, in ascending order of their numbers. Looks that were
        given up are left out.
        """
        numbers, found = self.read_all("looksOf", task, block=block)
        return [Seat.from_abi(int(number), values) for number, values in zip(numbers, found, strict=True)]

    def jury(self, task: int, block: BlockId = "latest") -> JuryView | None:
        """The jury for the task's claim; None if there is none."""
        return JuryView.from_abi(self.read_all("juryOf", task, block=block))

    def segments(self, task: int, seat: int) -> list[int]:
        """The segments of a seat, in order, or the one segment of a look. Raises Reverted before the task's
        first draw.
        """
        return [int(segment) for segment in self.read("segmentsOf", task, seat)]

    def first_draw(self) -> PendingDraw | None:
        """The first draw in the queue, the only one that can be executed; None if the queue is empty."""
        found = PendingDraw(*self.read("firstDraw"))
        return found if found.task else None
