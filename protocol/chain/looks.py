"""Informing: half of a seat's lock for its salt; and what follows from a look at a seat: what it reveals, what it is
accused of, what it answers (contracts/src/interfaces/ILooks.sol).

A look is named by its number (`protocol.dispute.looks`). What is looked at, a seat or a look, is called the seat here.
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
        """Show the salt of an attested seat: half of its lock is the sender's, who has committed to it before."""
        return self.write("inform", task, seat, digest, salt)

    def committed_in(self, commitment: bytes) -> int:
        """The block in which the sender committed; 0 if it has not, or has informed."""
        return int(self.read("committedIn", self._sender("committedIn").address, commitment))

    def reveal(
        self, task: int, look: int, secret: bytes, digest: bytes, segment_root: bytes, path: Sequence[bytes]
    ) -> Receipt:
        """As the seat that is looked at: show its secret, and in the digest that it attested the root of the segment
        (`protocol.commitments.digests.segment_path`). Due within the terms' move time of the look's draw.
        """
        return self.write("reveal", task, look, secret, digest, segment_root, list(path))

    def take_unrevealed(self, task: int, look: int) -> Receipt:
        """After the time of `reveal`: the silent seat's lock is lost, half of it to the looker."""
        return self.write("takeUnrevealed", task, look)

    def accuse(
        self, task: int, look: int, game: int, salt: bytes, segment_root: bytes, evidence: Evidence
    ) -> Receipt:
        """As the looker, which has attested: state that the segment root that the seat revealed, with this salt, is not
        of the states that the solver committed to, and have it answer for one chunk. It locks a bond of the terms' game
        cost.

        The solver's step tree must be on the chain. `game` is the looker's own that asked for it, and is dropped; 0
        where there is none.
        """
        proof = evidence.chunk, list(evidence.path), evidence.tensor, evidence.state
        return self.write("accuse", task, look, game, salt, segment_root, evidence.place, proof)

    def drop(self, task: int, look: int, game: int) -> Receipt:
        """As the looker, where another look has taken the lock of what it looks at: end its own game that asked for the
        step tree, at the terms' game cost.
        """
        return self.write("drop", task, look, game)

    def answer(self, task: int, look: int, segment_root: bytes, opening: Opening) -> Receipt:
        """As the accused seat: open the accusation's leaf at its place in the segment root that was revealed. The bond
        is the seat's.
        """
        accusation = opening.place, opening.leaf, segment_root
        paths = opening.chunk_path, opening.tensor_path, opening.state_path
        return self.write("answer", task, look, accusation, *(list(path) for path in paths))

    def contest(self, task: int, look: int, game: int) -> Receipt:
        """As the accused seat, whose own states differ: name its open game, blind or on the segment or an earlier one.
        While the game goes on no answer is due; a conviction ends the accusation.
        """
        return self.write("contest", task, look, game)

    def take_unanswered(self, task: int, look: int) -> Receipt:
        """After the time of `answer`: the accused seat's lock is lost, half of it to the looker, whose bond is free.
        Where another look has taken the lock the bond alone is.
        """
        return self.write("takeUnanswered", task, look)

    def close_moot(self, task: int, look: int) -> Receipt:
        """End an accusation in a task that was convicted: the bond is the accused seat's."""
        return self.write("closeMoot", task, look)

    def look(self, task: int, look: int, block: BlockId = "latest") -> LookView:
        """Where a look stands; for one that there is not, as before anything was revealed."""
        return LookView.from_abi(self.read("lookOf", task, look, block=block))

    def open_accusations(self, task: int, block: BlockId = "latest") -> int:
        """Accusations of a task that are not over: it is not settled before they are."""
        return int(self.read("openAccusations", task, block=block))

    def answers_until(self, task: int, block: BlockId = "latest") -> int:
        """Last second of the latest answer that is, or was, due: until then the task can be challenged. 0 where nobody
        was accused.
        """
        return int(self.read("answersUntil", task, block=block))
