"""Brings a challenge from a difference to an open game: makes the priority commitment, and opens it
(dispute.md section 6).

This needs only the challenge's row and the chain, no bundle and no tree. So it never waits for memory, and
the commitment is sent before anything else. Each call is sent once, across restarts. A commitment that is not
opened in its opening period is forfeited, so a commitment is made only if there is time to open it. If the
task was convicted meanwhile, the commitment is opened with the contract's `openLate`, which returns the bond.

The contract may double the bond if it already holds many bonds of the task. Among these are the bonds of
commitments that were not opened in time: the contract holds each until somebody forfeits the commitment. So
if the bond is doubled, such commitments of other parties are forfeited first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.events import Follower, first_block
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Event, Receipt
from protocol.chain.transactions import Sent
from protocol.chain.views import TaskStatus, TaskView
from protocol.commitments import segment_tree
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment, steps_key
from protocol.dispute.openings import open_leaf
from protocol.node import logs
from protocol.node.words import duration
from protocol.tasks import owed
from protocol.tasks.admission import Clocks, Owed, Rates, admission
from protocol.tasks.task import Terms
from verifier.bonds import Bonds
from verifier.database import Challenge, Database
from verifier.salts import salt_of_challenge

OPENED_LATE = "opened_late"
NEEDLESS = "needless"
"""Outcome of a challenge that was no longer needed before it was committed to. No challenge is needed once
the task is over. A challenge that only asks is not needed either once the step tree is on the chain, or once
its look can accuse nobody any more.
"""
FORFEITED = "forfeited"
"""Outcome of a challenge that was not opened in time, in a task that has ended."""


def nothing(_challenge: Challenge) -> Sequence[Owed]:
    """Default for `beside`: nothing else is owed."""
    return ()


def is_answered(client: Client, challenge: Challenge) -> bool:
    """Whether the step tree of a challenge's segment is on the chain, so that nothing need be asked. Raises
    ChainError.
    """
    if challenge.segment is None:
        return False
    return bool(client.game.claim(steps_key(challenge.task, challenge.segment)).posted_at)


class ChallengeCommitment:
    """Commits to one challenge and opens it, from the challenge's own account. Its state is in the
    database, so it can be recreated after a restart.
    """

    def __init__(
        self,
        client: Client,
        database: Database,
        bonds: Bonds,
        terms: Terms,
        challenge: Challenge,
        rates: Callable[[], Rates],
        look: float = 0.0,
        beside: Callable[[Challenge], Sequence[Owed]] = nothing,
    ) -> None:
        """`look` is the number of seconds between two looks at the chain; `beside` returns what else this
        process owes.
        """
        self._client = client
        self._database = database
        self._bonds = bonds
        self._game = owed.game("this game", terms)
        self._bond = terms.bond
        self._forfeits: list[Sent] | None = None
        """The forfeits that were sent because the bond was doubled; None until they are sent."""
        self._rates = rates
        self._look = look
        self._beside = beside
        self._waits = ""
        self._key = challenge.key
        self._task = challenge.task
        self._log = logs.get("verifier.challenge_commitment").bind(
            task=challenge.task, account=client.address
        )
        if challenge.seat != NO_SEAT:
            self._log = self._log.bind(seat=challenge.seat)
        self.own_turn = True
        """Whether something must be sent before the process may stop."""

    def advance(self, challenge: Challenge) -> Receipt | None:
        """Send the next transaction that is due before the game. Returns the receipt of the transaction that
        opened the game, otherwise None. Raises ChainError, NotEnoughTokens, NotEnoughCoin.
        """
        if challenge.is_committed:
            return self._open(challenge)
        self._commit(challenge)
        return None

    def _commit(self, challenge: Challenge) -> None:
        commitment = self._commitment(challenge)
        # An earlier transaction is always looked up, even if the task or the tokens have changed since.
        seat = self._sent_from(challenge)
        if seat is None:
            self.own_turn = False  # nothing is at stake yet
            seat = self._held_seat(challenge)
            if not self._may_commit(challenge, seat):
                return
        self.own_turn = True
        try:
            made = self._made(seat, commitment)
        except Reverted:  # its bond is not at stake, and must not be kept from other challenges
            self._database.begin_again(self._key)
            raise
        self._database.update_challenge(self._key, opening_until=self._ends(made))
        self._log.warning("committed", segment=challenge.segment, bond=made.arguments["bond"] / TOKEN)

    def _sent_from(self, challenge: Challenge) -> int | None:
        """The seat with which the commitment was sent, or NO_SEAT if it was sent without one. None if no
        commitment was sent, or if it was refused.
        """
        calls, commitment = self._client.commitments, self._commitment(challenge)
        seats = dict.fromkeys((challenge.seat, NO_SEAT))
        return next((seat for seat in seats if calls.committing(self._task, seat, commitment)), None)

    def _held_seat(self, challenge: Challenge) -> int:
        """The challenge's seat if the challenge's account still holds that seat, otherwise NO_SEAT. The seat
        may have gone to another account, because it may have been drawn again since the difference was found.
        The commitment's hash does not contain the seat.
        """
        if challenge.seat == NO_SEAT:
            return NO_SEAT
        held = self._client.audit.seat(self._task, challenge.seat).account == self._client.address
        return challenge.seat if held else NO_SEAT

    def _made(self, seat: int, commitment: bytes) -> Event:
        """Commit, and return the commitment's event. If the journal is lost, the event is read from the
        chain. Raises ChainError.
        """
        calls = self._client.commitments
        try:
            return calls.event(calls.commit(self._task, seat, commitment), "Committed")
        except Reverted as error:
            if error.name != "AlreadyCommitted":
                raise
            period = self._client.deployment.parameters.opening_period
            connection, since = self._client.connection, self._client.now() - 2 * period
            first = first_block(connection, self._client.deployment.block, since)
            topics = [None, self._task.to_bytes(32), commitment]
            found = Follower(connection, {calls.address: calls.contract}, first, topics=topics).poll().events
            made = [event for event in found if event.name == "Committed"]
            if not made:  # its period ended long ago, and nobody has forfeited it
                raise
            return made[-1]

    def _may_commit(self, challenge: Challenge, seat: int) -> bool:
        """Whether to commit now, from this seat or without a seat. If the result is True, the bond that the
        commitment locks is free in the vault, and is noted as at stake.

        If the challenge is needless, or has too little time even without other work, its outcome is recorded.
        If the bond is doubled, other parties' unopened commitments are forfeited first (`_is_forfeiting`).
        """
        block, inclusion = self._client.connection.block_time, self._client.inclusion
        refused = admission([self._game], self._clocks, self._rates())
        if refused is not None:
            # The bond would be lost on time. The noted challenge also prevents an attestation.
            self._database.update_challenge(self._key, outcome="clock_too_short")
            self._log.error("not challenged: the clock is too short", sum=str(refused))
            return False
        # Opening needs a later block than the commitment.
        opening, period = block + inclusion, self._client.deployment.parameters.opening_period
        if opening > period:
            self._database.update_challenge(self._key, outcome="opening_too_short")
            self._log.error(
                "not challenged: no time to open", there_is=duration(period), due=duration(opening)
            )
            return False
        view = self._client.market.task(self._task)
        # Only a look that is still ours can accuse.
        accuses = view.status is TaskStatus.SUBMITTED and seat != NO_SEAT
        answered = challenge.asks and is_answered(self._client, challenge)
        if view.status.is_over or answered or (challenge.asks and not accuses):
            self._database.update_challenge(self._key, outcome=NEEDLESS)
            return False
        # A redraw reopens the time for challenges.
        left = self._challenged_until(view) - self._client.now() - inclusion - opening
        if left < 0:
            return False
        if left >= inclusion and self._is_forfeiting(seat, view):
            return False  # the bond is smaller once these are mined
        return self._bonds.require(challenge, seat, self._fits)

    def _is_forfeiting(self, seat: int, view: TaskView) -> bool:
        """Whether transactions that forfeit other commitments, and so make the bond smaller, are on their
        way. They are sent once, if the bond is doubled. Nothing is sent for commitments that were opened or
        can still be opened, because the contract refuses to forfeit them. Raises ChainError.
        """
        calls, connection = self._client.commitments, self._client.connection
        if self._forfeits is None:
            if calls.bond(self._task, seat) <= self._bond:
                return False
            # Nobody can commit before the submission.
            first = first_block(connection, self._client.deployment.block, view.bids_until)
            topics = [None, self._task.to_bytes(32)]
            found = Follower(connection, {calls.address: calls.contract}, first, topics=topics).poll().events
            held: dict[tuple[str, bytes], None] = {}
            for event in found:
                if event.name not in ("Committed", "Forfeited", "OpenedLate"):
                    continue
                made = event.arguments["challenger"], event.arguments["commitment"]
                held.pop(made, None)
                if event.name == "Committed":
                    held[made] = None
            self._forfeits = calls.forfeit_all(list(held))
            sent = sum(one.nonce is not None for one in self._forfeits)
            self._log.info("forfeits commitments that were not opened", count=sent)
        return None in self._client.outcomes(self._forfeits)

    @property
    def _clocks(self) -> Clocks:
        return Clocks(self._client.inclusion, self._look, self._client.now())

    def _fits(self, challenge: Challenge) -> bool:
        """Whether the game fits beside everything that is owed. If not, the caller asks again as long as
        the task can be challenged.
        """
        refused = admission([self._game, *self._beside(challenge)], self._clocks, self._rates())
        waits = "" if refused is None else str(refused)
        if waits and waits != self._waits:
            self._log.warning("not challenged while other work is due", sum=waits)
        self._waits = waits
        return refused is None

    def _challenged_until(self, view: TaskView) -> int:
        """The last second for a challenge: the end of the window or, if that is later, the last deadline for
        an answer to an accusation. An accused account may have to challenge to keep its lock.
        """
        return max(view.challenge_until, self._client.looks.answers_until(self._task))

    def _open(self, challenge: Challenge) -> Receipt | None:
        client, task = self._client, self._task
        # Called before checking the time, because it also finds a game that an earlier process opened.
        try:
            if challenge.segment is None:
                game, receipt = client.game.challenge_blind(task, challenge.salt)
            else:
                i, roots = challenge.segment, challenge.checkpoint_roots()
                tree = segment_tree(roots)
                before, after = open_leaf(tree, i - 1, roots[i - 1]), open_leaf(tree, i, roots[i])
                game, receipt = client.game.challenge(task, i, challenge.salt, before, after)
        except Reverted as error:
            taken_back = error.name == "NotCommitted" and self._was_taken_back(challenge)
            if not taken_back and not self._ends_unopened(challenge):
                raise
            return None
        self._database.update_challenge(self._key, game=game)
        self._log.warning("challenged", game=game, segment=challenge.segment)
        return receipt

    def _was_taken_back(self, challenge: Challenge) -> bool:
        """Whether a re-organisation changed the commitment. If its transaction was mined again in another
        block, the new end of the opening period is noted. If the contract refused the transaction in that
        block, for example because the block came before the task's submission, the challenge begins again.
        """
        try:
            seat = self._sent_from(challenge)
            until = None if seat is None else self._ends(self._made(seat, self._commitment(challenge)))
        except Reverted:
            until = None
        if until is None:
            self._log.warning("the commitment is not there any more")
            self._database.begin_again(self._key)
        elif until != challenge.opening_until:
            self._database.update_challenge(self._key, opening_until=until)
        return until != challenge.opening_until

    def _ends(self, committed: Event) -> int:
        """The last second for opening the commitment."""
        period = self._client.deployment.parameters.opening_period
        return self._client.connection.block(committed.log.block).time + period

    def _ends_unopened(self, challenge: Challenge) -> bool:
        """Do what follows from a refused opening. Returns True if the opening need not be tried again.

        If the task was convicted and the commitment can be opened late, it is opened late, and the result is
        True. Otherwise, the time for opening decides. During that time, nothing is done, and the result is
        True only if the task was not convicted and cannot be challenged any more. After that time, the bond
        is forfeited, the challenge begins again with another salt unless the task is over, and the result is
        True.
        """
        client, until = self._client, challenge.opening_until
        assert until is not None
        view = client.market.task(self._task)
        if view.status is TaskStatus.SLASHED and self._opens_late(challenge):
            return True
        now = client.now()
        if now <= until:
            self.own_turn = view.status is TaskStatus.SLASHED or (
                not view.status.is_over and now <= self._challenged_until(view)
            )
            return not self.own_turn
        self.own_turn = False
        sent_from = self._sent_from(challenge)
        seat = challenge.seat if sent_from is None else sent_from
        made = self._made(seat, self._commitment(challenge))  # mined long ago
        bond = made.arguments["bond"] / TOKEN
        self._log.error("the bond is forfeited: not opened in time", bond=bond, until=until)
        if view.status.is_over:
            self._database.update_challenge(self._key, outcome=FORFEITED)
        else:
            again = salt_of_challenge(client, self._task, challenge.seat, challenge.segment, challenge.salt)
            self._database.renew_challenge(self._key, again)
        return True

    def _opens_late(self, challenge: Challenge) -> bool:
        """Open the commitment late, after the conviction. This returns the bond. If the account still has the
        challenge's seat, this also pays the game's cost and the seat's fee. Returns whether the commitment
        was opened.
        """
        calls = self._client.commitments
        segment = SEGMENT_UNKNOWN if challenge.segment is None else challenge.segment
        for seat in dict.fromkeys((challenge.seat, NO_SEAT)):  # the seat may have been drawn again
            try:
                receipt = calls.open_late(self._task, segment, challenge.salt, seat)
            except Reverted as error:
                self._log.debug("refused by the contract", what="openLate", seat=seat, error=error.name)
                continue
            paid = [
                event.arguments["amount"] for event in calls.events(receipt) if event.name == "Compensated"
            ]
            self._database.update_challenge(self._key, outcome=OPENED_LATE)
            self._log.warning("opened late: the bond is back", compensation=sum(paid) / TOKEN)
            self.own_turn = False
            return True
        return False

    def _commitment(self, challenge: Challenge) -> bytes:
        client = self._client
        segment = SEGMENT_UNKNOWN if challenge.segment is None else challenge.segment
        chain = client.deployment.chain_id
        return priority_commitment(
            chain, client.commitments.address, challenge.task, segment, client.address, challenge.salt
        )
