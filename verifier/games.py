"""All challenges of one process's accounts. Commitments are made immediately. Games are played as far as the
process's memory allows, the earliest deadline first.

Committing, opening a game and checking whose turn it is take no memory and no replay worker. So these are
done for every challenge, the largest stake first. Open trees take memory: the operator's setting `games` is
the largest number of challenges that have their trees open at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from protocol.node.party.exits import Observation
from verifier.bonds import Bonds
from verifier.challenge_commitment import ChallengeCommitment
from verifier.challenging import ChallengeDriver
from verifier.context import Context
from verifier.database import Challenge
from verifier.engagements import Engagements
from verifier.jobs import Failure, Job, Jobs
from verifier.seats import own_seats

TURNS = 64
"""Maximum number of threads that send transactions and read the chain. Each starts on demand and mostly waits for
receipts.
"""
LONGEST_REST = 4.0
"""Longest pause in seconds after a failure."""

TURN, TREES, BOND = "turn", "trees", "bond"

Key = tuple[int, int]
"""Task and seat of a challenge (`Challenge.key`)."""


class Games:
    """The challenges of one deployment. Used by the loop's thread. `fetches` fetches bundles that are not
    on this machine any more.
    """

    def __init__(self, context: Context, fetches: Jobs, engagements: Engagements) -> None:
        self._context = context
        self._engagements = engagements
        self._limit = context.settings.games
        self._fetches = fetches
        self._turns = Jobs(TURNS, LONGEST_REST, due=context.turns.due)
        self._opening = Jobs(self._limit, LONGEST_REST, due=context.turns.due)
        self.bonds = Bonds(
            context.clients, context.database, context.terms, engagements.admitting, engagements.bonds
        )
        self._drivers: dict[Key, ChallengeDriver] = {}
        self._strangers: set[str] = set()
        """Accounts that have challenges in the database but do not belong to this process."""

    def __len__(self) -> int:
        return len(self._drivers)

    @property
    def moves_due(self) -> bool:
        """Whether our own clock runs in a game, or a commitment must still be made or opened."""
        return bool(self._opening.busy) or any(game.own_turn for game in self._drivers.values())

    def is_busy(self, task: int) -> bool:
        """Whether work on this task's challenges is in progress."""
        return any(self._is_played(key) for key in self._drivers if key[0] == task)

    def make_ready(self, seen: Observation) -> Iterator[Job]:
        """Jobs that deposit the bonds that our accounts may soon lock. These accounts are the ones with seats
        or looks in this task that have not attested and, for a whistleblower, the main account.
        """
        if not seen.view.status.can_be_challenged:
            return
        accounts = {seat.account for seat in own_seats(seen, self._context.clients)}
        if self._context.settings.whistleblow:
            accounts.add(self._context.client.address)
        for account in accounts:
            if not self.bonds.is_ready(account, seen.view.task):
                work = partial(self.bonds.make_ready, account, seen.view.task)
                yield Job(seen.view.task, f"{BOND} {account}", work)

    def begin(self) -> None:
        """Start challenges for differences found since the last call, and send their commitments."""
        rows = self._context.database.open_challenges()
        new = [row for row in rows if row.key not in self._drivers and self._is_own(row)]
        for row in sorted(new, key=lambda row: self.bonds.at_stake(row.task), reverse=True):
            client, terms = self._context.clients[row.account], self._context.terms(row.task)
            database, look, turns = self._context.database, self._context.settings.pace, self._context.turns
            rates, beside = partial(getattr, self._context, "rates"), self._engagements.beside
            commitment = ChallengeCommitment(client, database, self.bonds, terms, row, rates, look, beside)
            self._drivers[row.key] = ChallengeDriver(client, database, commitment, row, look, turns.due)
            self._offer_turn(row.key)

    def play(self) -> int:
        """Offer the next action of every challenge to the worker threads. Returns how many challenges are open."""
        rows = {row.key: row for row in self._context.database.open_challenges()}
        self._drivers = {
            key: game for key, game in self._drivers.items() if key in rows or self._is_played(key)
        }
        self._open_trees()
        self.begin()
        unopened = [key for key, row in rows.items() if row.game is None]
        for key in sorted(unopened, key=lambda key: self.bonds.at_stake(key[0]), reverse=True):
            self._offer_turn(key)
        for key in sorted(self._drivers, key=lambda key: self._drivers[key].deadline):
            self._offer_turn(key)
        return len(rows)

    def collect(self) -> list[Failure]:
        """Failures since the last call."""
        return [*self._turns.collect(), *self._opening.collect()]

    def forget(self, task: int) -> None:
        """Drop the pauses of a task that is over."""
        self._turns.rests.forget(task)
        self._opening.rests.forget(task)

    def close(self) -> None:
        """Wait until no work is in progress."""
        self._turns.close()
        self._opening.close()

    def _is_played(self, key: Key) -> bool:
        task, seat = key
        return (task, f"{TURN} {seat}") in self._turns or (task, f"{TREES} {seat}") in self._opening

    def _is_own(self, row: Challenge) -> bool:
        """Whether the challenge's account still belongs to this process. If it does not, this is logged once."""
        if row.account in self._context.clients:
            return True
        if row.account not in self._strangers:
            self._strangers.add(row.account)
            self._context.log.error(
                "a challenge waits for its account: start with it again", task=row.task, account=row.account
            )
        return False

    def _offer_turn(self, key: Key) -> None:
        task, seat = key
        game = self._drivers.get(key)
        if game is not None and (task, f"{TREES} {seat}") not in self._opening:
            self._turns.offer(Job(task, f"{TURN} {seat}", game.advance, game.deadline))

    def _open_trees(self) -> None:
        """Open trees for moves that are due, the earliest deadline first. A game that waits for its solver
        may have to release its trees.
        """
        idle = {key: game for key, game in self._drivers.items() if not self._is_played(key)}
        due = sorted((game.deadline, key) for key, game in idle.items() if game.needs_trees)
        waiting = [game for game in idle.values() if game.holds_trees and not game.own_turn]
        held = self._opening.busy + sum(game.holds_trees for game in self._drivers.values())
        for _, key in due:
            task, seat = key
            terms = self._context.terms(task)
            if not self._context.materials.has_bundle(terms):
                self._fetches.offer(
                    Job(task, "fetch", partial(self._context.fetch, task, self._fetches.rests.lost(task)))
                )
                continue
            if held >= self._limit and waiting:
                waiting.pop().let_go()
                held -= 1
            job = Job(task, f"{TREES} {seat}", partial(self._open, key), self._drivers[key].deadline)
            if held < self._limit and self._opening.offer(job):
                held += 1

    def _open(self, key: Key) -> None:
        material = self._context.load(key[0])
        self._drivers[key].open_trees(material, self._context.strategy.challenger)
