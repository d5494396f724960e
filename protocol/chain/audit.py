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
    """Every write raises Reverted with the board's own error when it is out of order, early or late."""

    def register(self, level: int, offer: Offer) -> Receipt:
        """Lock the stake of 2^level units, level 15 at most, and be drawn for tasks posted from now on."""
        return self.write("register", level, astuple(offer))

    def resign(self) -> Receipt:
        """Take no part in draws that are requested from now on."""
        return self.write("resign")

    def leave(self) -> Receipt:
        """After the unbonding period of a resignation, without a seat: free the stake."""
        return self.write("quit")

    def resume(self) -> Receipt:
        """After a silence, or a lost lock: refill the stake from the free balance, and be drawn again."""
        return self.write("resume")

    def redraw(self, task: int) -> Receipt:
        """Request another draw for the task's seats, or looks, that have not attested in time."""
        return self.write("redraw", task)

    def lapse(self, task: int) -> Receipt:
        """End the looks of a task, and a jury that one of them requested, whose draw was not executed within the
        stall period after its round.
        """
        return self.write("lapse", task)

    def draw(self, task: int, signature: bytes, hints: Hints) -> Receipt:
        """Execute the first draw of the queue, which must be the task's, with the signature of its round (64 bytes)
        and the hints of the round's message. `protocol.node.party.rounds` does this for the whole queue.
        """
        return self.write("draw", task, signature, hints)

    def attest(self, task: int, seat: int, digest: bytes, salt_hash: bytes) -> Receipt:
        """Attest that the seat's segments were replayed, are as committed or challenged, and that the result is held.
        The digest covers all replayed states (audit.md section 4); the other word is the keccak256 of its salt.
        Both have 32 bytes. A look attests the same of its one segment, with its number instead of the seat's. A juror
        attests, with its number, that it has the item (`protocol.dispute.juries`).
        """
        return self.write("attest", task, seat, digest, salt_hash)

    def attestation(self, task: int, seat: int, block: BlockId = "latest") -> bytes | None:
        """What the board keeps of a seat's attestation (`protocol.dispute.keys.attestation_word`); None where it keeps
        none.
        """
        word = bytes(self.read("attestationOf", task, seat, block=block))
        return word if any(word) else None

    def release(self, task: int, seat: int) -> Receipt:
        """Free the account that sits in a seat, look or jury of a task that is over."""
        return self.write_once("release", task, seat)

    def registered(self) -> int:
        """Registrations that have not resigned; a task can be posted only while there is one."""
        return int(self.read("registered"))

    def registration(self, account: str, block: BlockId = "latest") -> Registration | None:
        """An account's registration, until it has left; None without one."""
        found = Registration.from_abi(self.read("registrationOf", account, block=block))
        return None if found.account == NOBODY else found

    def audit(self, task: int, block: BlockId = "latest") -> AuditView:
        """The state of a task's draws."""
        return AuditView.from_abi(self.read("auditOf", task, block=block))

    def ahead(self, tasks: Sequence[int]) -> None:
        """Inside of a view: fetch what `audit`, `seats` and `looks` tell of each task in few requests."""
        for function in ("auditOf", "seatsOf", "looksOf"):
            self.ask_ahead(function, *([task] for task in tasks))

    def seats(self, task: int, block: BlockId = "latest") -> list[Seat]:
        """A task's seats in order; empty before its first draw."""
        found = self.read("seatsOf", task, block=block)
        return [Seat.from_abi(number, values) for number, values in enumerate(found)]

    def seat(self, task: int, number: int, block: BlockId = "latest") -> Seat:
        """One seat, look or juror of a task: empty before its draw, and for a number that does not exist."""
        return Seat.from_abi(number, self.read("seatOf", task, number, block=block))

    def looks(self, task: int, block: BlockId = "latest") -> list[Seat]:
        """A task's looks that accounts were drawn for, by ascending number, without those that were given up."""
        numbers, found = self.read_all("looksOf", task, block=block)
        return [Seat.from_abi(int(number), values) for number, values in zip(numbers, found, strict=True)]

    def jury(self, task: int, block: BlockId = "latest") -> JuryView | None:
        """The jury that judges a claim of the task; None without one."""
        return JuryView.from_abi(self.read_all("juryOf", task, block=block))

    def segments(self, task: int, seat: int) -> list[int]:
        """The segments of a seat, in its order; of a look its one segment. Raises Reverted before the task's first
        draw.
        """
        return [int(segment) for segment in self.read("segmentsOf", task, seat)]

    def first_draw(self) -> PendingDraw | None:
        """The first draw of the queue, the only one that can be executed; None without one."""
        found = PendingDraw(*self.read("firstDraw"))
        return found if found.task else None
