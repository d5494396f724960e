"""The audit board: verifiers, draws, attestations (contracts/src/interfaces/IAuditBoard.sol)."""

from __future__ import annotations

from eth_utils.address import to_checksum_address

from protocol.chain.bound_contract import BoundContract
from protocol.chain.header import encoded_header
from protocol.chain.receipts import Receipt
from protocol.chain.views import Duty


class Audit(BoundContract):
    """Slots, draws and duties."""

    def register(self, slots: int) -> Receipt:
        """Lock the stake of `slots` units, 255 at most, and take part in the draws of tasks posted from now on."""
        return self.write("register", slots)

    def resign(self) -> Receipt:
        """Leave later draws; the stake unbonds."""
        return self.write("resign")

    def live_slots(self) -> int:
        """Slots whose verifiers have not resigned: a task can be posted while there is one."""
        return int(self.read("liveSlots"))

    def live_verifiers(self) -> int:
        """Accounts with live slots: as many attestations as a segment can have."""
        return int(self.read("liveVerifiers"))

    def draw_lost(self, task: int) -> bool:
        """Whether the task was not drawn and never will be."""
        return bool(self.read("drawLost", task))

    def draw(self, task: int, block: int) -> Receipt:
        """Prove the header of the task's draw block and draw its verifiers. The block must exist."""
        return self.write_once("draw", task, encoded_header(self.connection, block))

    def missed(self, task: int) -> Receipt:
        """The draw block's hash is out of reach: fix another."""
        return self.write("missed", task)

    def attest(self, task: int, duty: int, steps_root: bytes) -> Receipt:
        """State that the duty's segment is as committed, with the root of one's own step tree."""
        return self.write_once("attest", task, duty, steps_root)

    def duties(self, task: int) -> list[Duty]:
        """Duties of a drawn task, in order; empty before the draw."""
        found = self.read("dutiesOf", task)
        return [
            Duty(number, to_checksum_address(verifier), segment, attested)
            for number, (verifier, segment, attested) in enumerate(found)
        ]

    def drawn_at(self, task: int) -> int:
        """Time of the draw in seconds since 1970, 0 before it."""
        return int(self.read("drawnAt", task))

    def satisfied(self, task: int) -> bool:
        """Whether each drawn segment has the attestations that the terms ask for."""
        return bool(self.read("satisfied", task))
