"""The looks contract (contracts/src/interfaces/ILooks.sol). In a look, another account replays one segment of
a seat. The contract handles the moves that follow: the seat's reveal, an accusation and an answer. It also
pays informers: an informer shows a seat's salt and gets half of the seat's lock.

An argument `look` is a look's number (`protocol.dispute.looks`). The "seat" that a look checks may itself be
a look.
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
    """The looks contract. A transaction that is out of order, too early or too late raises Reverted with the
    contract's own error.
    """

    def commit_informing(self, commitment: bytes) -> Receipt:
        """Commit to calling `inform` in a later block (`protocol.dispute.keys.informing_commitment`)."""
        return self.write("commitInforming", commitment)

    def inform(self, task: int, seat: int, digest: bytes, salt: bytes) -> Receipt:
        """Show the salt of an attested seat. Half of the seat's lock goes to the sender, which must have
        committed to this call in an earlier block (`commit_informing`).
        """
        return self.write("inform", task, seat, digest, salt)

    def committed_in(self, commitment: bytes) -> int:
        """The block in which the sender made this commitment to inform. It is 0 if the sender has not made
        the commitment, or has already called `inform` with it.
        """
        return int(self.read("committedIn", self._sender("committedIn").address, commitment))

    def reveal(
        self, task: int, look: int, secret: bytes, digest: bytes, segment_root: bytes, path: Sequence[bytes]
    ) -> Receipt:
        """As the seat that the look checks: show the seat's secret, the digest that the seat attested, and
        the root of the segment's step tree under the seat's salt. `path` proves that the digest contains this
        root (`protocol.commitments.digests.segment_path`). Due within the terms' move time after the task's
        latest draw that picked looks.
        """
        return self.write("reveal", task, look, secret, digest, segment_root, list(path))

    def take_unrevealed(self, task: int, look: int) -> Receipt:
        """After the time for `reveal`: take the silent seat's lock. Half of it goes to the looker."""
        return self.write("takeUnrevealed", task, look)

    def accuse(
        self, task: int, look: int, game: int, salt: bytes, segment_root: bytes, evidence: Evidence
    ) -> Receipt:
        """As the looker, once it has attested: accuse the seat, and require an answer for one chunk. The
        accusation says that the solver committed to states that are not under the segment root that the seat
        revealed. `salt` is the revealed salt. Locks a bond of the terms' game cost.

        The solver's step tree must be on the chain. `game` is the looker's own game that asked for the tree;
        0 if there is none. This call drops that game. A look can drop only one game, and only until
        `GameState.droppable_until`.
        """
        proof = evidence.chunk, list(evidence.path), evidence.tensor, evidence.state
        return self.write("accuse", task, look, game, salt, segment_root, evidence.place, proof)

    def drop(self, task: int, look: int, game: int) -> Receipt:
        """As the looker: drop the looker's own game that asked for the step tree. A look can do this only
        once, and only until `GameState.droppable_until`. The seat must already have lost its lock, or the
        task must be UNPAID. The terms' game cost is paid to the solver out of that game's bond.
        """
        return self.write("drop", task, look, game)

    def answer(self, task: int, look: int, segment_root: bytes, opening: Opening) -> Receipt:
        """As the accused seat: prove that the accused leaf is at its place under the revealed segment root.
        The accuser's bond goes to the seat.
        """
        accusation = opening.place, opening.leaf, segment_root
        paths = opening.chunk_path, opening.tensor_path, opening.state_path
        return self.write("answer", task, look, accusation, *(list(path) for path in paths))

    def contest(self, task: int, look: int, game: int) -> Receipt:
        """As the accused seat, if its states differ from the solver's: name the seat's open game. The game
        must be on the accused segment, on an earlier one, or on none yet. While the game lasts, nobody can
        take the seat's lock because of this accusation. A conviction ends the accusation.
        """
        return self.write("contest", task, look, game)

    def take_unanswered(self, task: int, look: int) -> Receipt:
        """After the time for `answer`: take the accused seat's lock. Half of it goes to the looker, whose
        bond is returned. If another look has already taken the lock, only the bond is returned.
        """
        return self.write("takeUnanswered", task, look)

    def close_moot(self, task: int, look: int) -> Receipt:
        """End an accusation that is moot. The accuser's bond goes to the accused seat if the task was
        convicted; it is returned if a jury found that data are withheld.
        """
        return self.write("closeMoot", task, look)

    def look(self, task: int, look: int, block: BlockId = "latest") -> LookView:
        """The state of a look. A look that does not exist has the same state as one before its reveal."""
        return LookView.from_abi(self.read("lookOf", task, look, block=block))

    def open_accusations(self, task: int, block: BlockId = "latest") -> int:
        """Number of a task's open accusations. The task cannot be settled before they end."""
        return int(self.read("openAccusations", task, block=block))

    def answers_until(self, task: int, block: BlockId = "latest") -> int:
        """The latest deadline for an answer to an accusation, past or future, in seconds since 1970; 0 if
        there was no accusation. The task can be challenged at least until then.
        """
        return int(self.read("answersUntil", task, block=block))
