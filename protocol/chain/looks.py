"""Informing (half of a seat's lock for its salt), and what follows from a look at a seat: its reveal, an accusation,
an answer (contracts/src/interfaces/ILooks.sol).

A look is named by its number (`protocol.dispute.looks`). Here "seat" means what is looked at, a seat or a look.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.views import LookView
from protocol.commitments.opened_chunks import Opening
from protocol.dispute.accusing import Evidence


class Looks(BoundContract):
    """Every write raises Reverted with the contract's own error when it is out of order, early or late."""

    def commit_informing(self, commitment: bytes) -> Receipt:
        """Commit to `inform` in a later block (`protocol.dispute.keys.informing_commitment`)."""
        return self.write("commitInforming", commitment)

    def inform(self, task: int, seat: int, digest: bytes, salt: bytes) -> Receipt:
        """Show the salt of an attested seat: half of its lock goes to the sender, which must have committed to it
        before.
        """
        return self.write("inform", task, seat, digest, salt)

    def committed_in(self, commitment: bytes) -> int:
        """The block in which the sender committed; 0 if it has not, or has informed."""
        return int(self.read("committedIn", self._sender("committedIn").address, commitment))

    def reveal(
        self, task: int, look: int, secret: bytes, digest: bytes, segment_root: bytes, path: Sequence[bytes]
    ) -> Receipt:
        """As the seat that is looked at: show its secret, and the root of the segment in the digest that it attested
        (`protocol.commitments.digests.segment_path`). Due within the terms' move time after the look's draw.
        """
        return self.write("reveal", task, look, secret, digest, segment_root, list(path))

    def take_unrevealed(self, task: int, look: int) -> Receipt:
        """After the time of `reveal`: the silent seat's lock is lost, half of it to the looker."""
        return self.write("takeUnrevealed", task, look)

    def accuse(
        self, task: int, look: int, game: int, salt: bytes, segment_root: bytes, evidence: Evidence
    ) -> Receipt:
        """As the looker, which has attested: state that the segment root that the seat revealed, with this salt, is
        not of the states that the solver committed to, and require an answer for one chunk. It locks a bond of the
        terms' game cost.

        The solver's step tree must be on the chain. `game` is the looker's own game that asked for it, which is
        dropped; 0 where there is none.
        """
        proof = evidence.chunk, list(evidence.path), evidence.tensor, evidence.state
        return self.write("accuse", task, look, game, salt, segment_root, evidence.place, proof)

    def drop(self, task: int, look: int, game: int) -> Receipt:
        """As the looker, where another look has taken the lock of the looked-at seat: end its own game that asked for
        the step tree, at the terms' game cost.
        """
        return self.write("drop", task, look, game)

    def answer(self, task: int, look: int, segment_root: bytes, opening: Opening) -> Receipt:
        """As the accused seat: open the accusation's leaf at its place in the revealed segment root. The bond goes to
        the seat.
        """
        accusation = opening.place, opening.leaf, segment_root
        paths = opening.chunk_path, opening.tensor_path, opening.state_path
        return self.write("answer", task, look, accusation, *(list(path) for path in paths))

    def contest(self, task: int, look: int, game: int) -> Receipt:
        """As the accused seat, whose own states differ: name its open game, which is blind or on this or an earlier
        segment. While the game lasts no answer is due; a conviction ends the accusation.
        """
        return self.write("contest", task, look, game)

    def take_unanswered(self, task: int, look: int) -> Receipt:
        """After the time of `answer`: the accused seat's lock is lost, half of it to the looker, whose bond is freed.
        Where another look has taken the lock, only the bond is freed.
        """
        return self.write("takeUnanswered", task, look)

    def close_moot(self, task: int, look: int) -> Receipt:
        """End an accusation in a convicted task: the bond goes to the accused seat."""
        return self.write("closeMoot", task, look)

    def look(self, task: int, look: int, block: BlockId = "latest") -> LookView:
        """The state of a look; one that does not exist looks as before any reveal."""
        return LookView.from_abi(self.read("lookOf", task, look, block=block))

    def open_accusations(self, task: int, block: BlockId = "latest") -> int:
        """Open accusations of a task: it is not settled before they end."""
        return int(self.read("openAccusations", task, block=block))

    def answers_until(self, task: int, block: BlockId = "latest") -> int:
        """Last second of the latest due answer: until then the task can be challenged. 0 without an accusation."""
        return int(self.read("answersUntil", task, block=block))
