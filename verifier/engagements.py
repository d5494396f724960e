"""Lists the work that a verifier's accounts may have to do. A challenge begins only if its game fits beside
this work (`protocol.tasks.admission`).

A free account may be drawn at any time into any task that its offer accepts. A bound account has to do the
work of its seat, and to answer looks. A juror has to vote. Each challenge whose bond is at stake counts as a
game.

Two kinds of work are not counted. The first is work that does not fit into its time even without any other
work. If it counted, no game would fit beside it. The second is the replays of a seat whose solver this
verifier challenges. If they counted, a task's terms could make them so long that the challenge does not fit
beside them. A seat's replays of either kind have the lowest priority.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from protocol.chain.views import Seat, TaskStatus
from protocol.node.party.exits import Observation
from protocol.tasks import owed
from protocol.tasks.admission import Engagement, Owed, Standing, admission
from verifier import auditing
from verifier.bonds import Bonds
from verifier.context import Context
from verifier.database import Challenge
from verifier.registration import standing
from verifier.salts import salted_seats
from verifier.seats import own_seats


class Engagements:
    """The work owed under one deployment. A process may have several nodes, each with its own contracts; the
    work of all of them is added up. `leading` is the `Engagements` of the node with the newest contracts; it
    is None for that node itself. The nodes share `admitting`, a lock with which only one game is admitted at
    a time. They also share `bonds`, the list of the bonds of all nodes. The loop's thread calls `see`; any
    thread may call `beside`.
    """

    def __init__(self, context: Context, leading: Engagements | None = None) -> None:
        self._context = context
        self._places: dict[int, list[Engagement]] = {}
        self._lock = Lock()
        self._all: list[Engagements] = [] if leading is None else leading._all
        self._all.append(self)
        self.admitting: Lock = Lock() if leading is None else leading.admitting
        self.bonds: list[Bonds] = [] if leading is None else leading.bonds

    def see(self, seen: Observation) -> None:
        """Record the work that our seats, looks and jurors of a task owe now. Raises ChainError."""
        clocks = self._context.clocks(self._context.client, seen.now)
        rates = self._context.rates
        found = [one for one in self._of(seen) if admission([one], clocks, rates) is None]
        with self._lock:
            self._places[seen.view.task] = found

    def forget(self, task: int) -> None:
        """Drop what is noted about a task that is over."""
        with self._lock:
            self._places.pop(task, None)

    def beside(self, challenge: Challenge) -> list[Owed]:
        """Everything that is owed except the game of this challenge. Possible draws are counted under these
        contracts only, because the offers under other contracts were admitted separately, for another third
        of the machine (`registration`). Raises ChainError.
        """
        owed = [one for node in self._all for one in node._owed(challenge if node is self else None)]
        return [*owed, *self._drawable()]

    def _owed(self, but: Challenge | None) -> list[Engagement]:
        with self._lock:
            places = [one for found in self._places.values() for one in found]
        return [*places, *self._games(but)]

    def _of(self, seen: Observation) -> Iterator[Engagement]:
        context, task = self._context, seen.view.task
        if seen.view.status is not TaskStatus.SUBMITTED:
            return
        terms = context.terms(task)
        challenged = context.database.challenges(task)
        for seat in () if challenged else own_seats(seen, context.clients):
            if seen.now <= seat.until:
                left = self._undigested(seen, seat)
                yield owed.seat(f"seat {seat.number} of task {task}", terms, left, seat.until)
        for place in seen.places if terms.look_chance else ():
            if place.account in context.clients and not (place.released or place.caught):
                yield owed.answers(f"answers for seat {place.number} of task {task}", terms)
        jury = context.juries.of(task)
        if jury is not None and jury.view is not None and seen.now <= jury.view.until:
            for juror in jury.jurors:
                if juror.account in context.clients and not jury.has_voted(juror):
                    until = jury.view.until
                    yield owed.seat(f"juror {juror.number} of task {task}", terms, 0, until)

    def _undigested(self, seen: Observation, seat: Seat) -> int:
        """The number of segments of a seat that must still be replayed."""
        (own,) = salted_seats(self._context, seen, [seat])
        digested = self._context.database.digested(seen.view.task, own.hash, seen.view.root)
        due = auditing.segments_of(self._context, seen, seat)
        return sum(segment not in digested for segment in due if segment < seen.view.size)

    def _games(self, but: Challenge | None) -> Iterator[Engagement]:
        for row in self._context.database.open_challenges():
            if (but is None or row.key != but.key) and row.opening_until is not None:
                name = f"the game of task {row.task} that account {row.account} has a bond in"
                yield owed.game(name, self._context.terms(row.task))

    def _drawable(self) -> Iterator[Standing]:
        for client in self._context.clients.values():
            found = client.audit.registration(client.address)
            if found is not None and not found.is_bound:
                least = client.deployment.parameters.min_period
                yield standing(client.address, found.offer.speed, least, self._context.clocks(client))
