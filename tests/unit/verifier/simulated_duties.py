"""A verifier's seats, answers and games in simulated time. The simulated machine runs at a third of the rates
that the node assumes, which is as slow as `SAFETY` allows for.

The node's real `finds_worker`, `first_due` and `may_begin` decide which job gets a worker and whose step
begins. Each time the simulated node looks at the chain, jobs are offered with the node's deadlines. A running
step is never interrupted: more urgent steps start beside it and share the machine with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf
from random import Random

from protocol.execution.turns import Ask, may_begin
from protocol.tasks.admission import Clocks, Engagement, Rates, Standing, Work, seconds_beside
from protocol.tasks.task import BEGUN, SAFETY
from verifier.jobs import Job, finds_worker, first_due

RATES = Rates(1_000 * SAFETY)
"""At a third of these rates, an operation takes a millisecond."""
EPSILON = 1e-6


@dataclass(eq=False)
class Piece:
    """A replay, an answer or a move. It consists of steps that run one after the other; `steps` holds the
    seconds that each of them takes.
    """

    steps: Sequence[float]
    until: float
    done: float = inf


@dataclass(eq=False)
class Duty:
    """Work that is asked for at the time `asked` and must be done within `engagement.seconds`.

    The pieces of a seat or an answer are offered together and end in one transaction. The pieces of a game
    come one after the other, each with a transaction. The game's clock stops while the challenger thinks, for
    the seconds in `thinks`.
    """

    engagement: Engagement
    pieces: Sequence[Sequence[float]]
    asked: float
    workers: str
    thinks: Sequence[float] = ()
    late: bool = False
    offered: list[Piece] = field(default_factory=list)
    since: float = 0.0
    spent: float = 0.0

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return len(self.offered) == len(self.pieces) and all(piece.done < inf for piece in self.offered)


@dataclass(eq=False)
class _Running:
    piece: Piece
    job: Job
    ask: Ask
    step: int = 0
    left: float = 0.0
    """Seconds left of the step that is running; 0 if no step of the piece is running."""


class Machine:
    """Does all duties in simulated time."""

    def __init__(self, duties: Sequence[Duty], clocks: Clocks, workers: int) -> None:
        self._duties = duties
        self._clocks = clocks
        self._workers = {"replays": workers, "answers": workers, "games": 64}
        self._pools: dict[str, list[_Running]] = {name: [] for name in self._workers}
        self._waiting: dict[str, list[tuple[Job, Piece]]] = {}
        """For each pool, the jobs that found no worker at the last look."""
        self._now = self._look = 0.0
        self.crowded = False
        """Whether more steps ever ran at the same time than the admission allows for."""
        self._asked = 0

    def run(self) -> bool:
        """Do all duties until they are over or one is late, and return whether one is late."""
        while not all(duty.over for duty in self._duties):
            if self._now >= self._look - EPSILON:
                self._offer()
                if any(duty.late for duty in self._duties):
                    return True
                self._look = self._next_look(min(self._later(), default=inf))
            self._begin()
            self._pass()
        return any(duty.late for duty in self._duties)

    def _later(self) -> Iterator[float]:
        return (duty.asked for duty in self._duties if duty.asked > self._now + EPSILON)

    def _next_look(self, after: float) -> float:
        """The first look after the time `after`. Looks that find nothing new are skipped."""
        return inf if after == inf else self._clocks.look * (floor(after / self._clocks.look) + 1)

    @property
    def _threads(self) -> list[_Running]:
        return [running for pool in self._pools.values() for running in pool]

    def _offer(self) -> None:
        """A look: offer what has been asked for, the earliest deadline first."""
        wanted = [(piece, duty.workers) for duty in self._duties for piece in self._asked_of(duty)]
        busy = {id(running.piece) for running in self._threads}
        self._waiting = {name: [] for name in self._pools}
        for piece, name in sorted(wanted, key=lambda pair: pair[0].until):
            pool, job = self._pools[name], Job(None, "", lambda: None, piece.until)
            if id(piece) in busy:
                continue
            if finds_worker(job, [one.job for one in pool], self._workers[name]):
                pool.append(_Running(piece, job, self._ask(piece.until)))
            else:
                self._waiting[name].append((job, piece))

    def _asked_of(self, duty: Duty) -> Iterator[Piece]:
        if duty.asked > self._now + EPSILON:
            return
        if duty.thinks:
            self._play(duty)
        elif not duty.offered:
            waits = duty.engagement.waits if duty.workers == "replays" else 1
            until = duty.asked + duty.engagement.seconds - seconds_beside(self._clocks, waits=waits)
            duty.offered = [Piece(steps, until) for steps in duty.pieces]
        elif duty.over and not duty.since:
            duty.since = self._now  # attested at this look; an answer was sent when it was computed
            sent = self._now if duty.workers == "replays" else max(piece.done for piece in duty.offered)
            end = sent + self._clocks.inclusion
            duty.late = end > duty.asked + duty.engagement.seconds + EPSILON
        yield from (piece for piece in duty.offered if piece.done == inf)

    def _play(self, duty: Duty) -> None:
        """Offer a game's next move once the move is asked for."""
        made = len(duty.offered)
        if made and duty.offered[-1].done < inf and duty.since > -inf:
            mined = duty.offered[-1].done + self._clocks.inclusion
            duty.spent += mined - duty.since
            duty.late = duty.spent > duty.engagement.seconds + EPSILON
            duty.since = -inf
            duty.asked = mined + duty.thinks[made] if made < len(duty.thinks) else inf
        if duty.asked <= self._now + EPSILON and made < len(duty.pieces):
            duty.since = duty.asked
            left = len(duty.pieces) - made
            deadline = duty.asked + duty.engagement.seconds - duty.spent
            until = deadline - left * seconds_beside(self._clocks)
            duty.offered.append(Piece(duty.pieces[made], until))

    def _ask(self, by: float) -> Ask:
        self._asked += 1
        return Ask(by, self._asked)

    def _begin(self) -> None:
        """Begin the steps whose turn it is."""
        begun = True
        while begun:
            waiting = [one.ask for one in self._threads if not one.left and one.piece.done == inf]
            running = [one.ask for one in self._threads if one.left]
            begun = False
            for one in self._threads:
                asks = not one.left and one.piece.done == inf
                if asks and may_begin(one.ask, waiting, running, shared=True):
                    one.left = one.piece.steps[one.step]
                    begun = True
                    break

    def _pass(self) -> None:
        """Advance until a step ends, or to the next look."""
        running = [one for one in self._threads if one.left]
        self.crowded |= len(running) > 1 + BEGUN
        rate = 1 / max(1, len(running))
        seconds = min([self._look - self._now, *(one.left / rate for one in running)])
        self._now += seconds
        for one in running:
            one.left -= seconds * rate
            if one.left <= EPSILON:
                one.left, one.step = 0.0, one.step + 1
                one.ask = self._ask(one.ask.by)
                if one.step == len(one.piece.steps):
                    one.piece.done = self._now
                    self._free(one)
                    self._look = min(self._look, self._next_look(self._now))

    def _free(self, ended: _Running) -> None:
        """Free the worker of a piece that has ended. If a job waits and fewer pieces are running than there
        are workers, the worker takes the waiting job that is due first.
        """
        for name, pool in self._pools.items():
            if ended not in pool:
                continue
            pool.remove(ended)
            waiting = self._waiting[name]
            job = first_due(job for job, _ in waiting)
            if job is not None and len(pool) < self._workers[name]:
                piece = next(piece for other, piece in waiting if other is job)
                waiting.remove((job, piece))
                pool.append(_Running(piece, job, self._ask(piece.until)))


def random_duties(random: Random, clocks: Clocks) -> tuple[list[Duty], list[Standing]]:
    """Return two lists: random duties, and the offers of the accounts that are drawn repeatedly. The duties
    are seats, answers and games that are asked for at random times; and, in addition, the seats for which
    these accounts are drawn.

    Each draw gives an account as much work as its offer accepts. The windows of all other duties are not set
    here; the caller chooses them.
    """
    duties = []
    most = random.choice((1.0, 3.0, inf))
    for number in range(random.randint(1, 4)):
        kind = random.choice(("replays", "answers", "games"))
        count = random.randint(1, 3)
        pieces = [_steps(random, random.uniform(0.1, 20), most) for _ in range(count)]
        games = kind == "games"
        thinks = [random.choice((0.0, random.uniform(0, 60))) for _ in range(count)] if games else []
        asked = random.choice((0.0, random.uniform(0, 60)))
        work = Work(ceil(1_000 * sum(map(sum, pieces))), transactions=count if games else 1)
        step = Work(ceil(1_000 * max(map(max, pieces))))
        engagement = Engagement(f"{kind} {number}", work, 0.0, step, count + (kind == "replays"))
        duties.append(Duty(engagement, pieces, asked, kind, thinks))
    longest = max(duty.engagement.piece.operations for duty in duties) / 1_000
    standing = []
    for account in range(random.choice((0, 0, 1, 2))):
        beside = seconds_beside(clocks, longest, waits=SEGMENTS + 1)
        shortest = random.uniform(20, 60) + beside
        operations = 1_000 * random.uniform(0.05, 0.4) * (1 - beside / shortest)
        standing.append(Standing(f"account {account}", operations, shortest, beside))
        duties += _draws(random, standing[-1], longest)
    return duties, standing


SEGMENTS = 2
"""Maximum number of segments in a seat that an account is drawn for."""


def _draws(random: Random, offer: Standing, longest: float) -> Iterator[Duty]:
    """Successive seats that an account is drawn for, each with as much work as its offer accepts."""
    asked = 0.0
    for number in range(random.randint(1, 4)):
        asked += random.choice((0.0, random.uniform(0, 40)))
        seconds = offer.shortest * random.choice((1.0, random.uniform(1, 4)))
        segments = random.randint(1, SEGMENTS)
        work = offer.operations * seconds / 1_000
        pieces = [_steps(random, work / segments, longest) for _ in range(segments)]
        engagement = Engagement(f"{offer.name}, draw {number}", Work(), seconds, waits=segments + 1)
        yield Duty(engagement, pieces, asked, "replays")
        asked += seconds


def _steps(random: Random, seconds: float, longest: float) -> list[float]:
    """A replay as one or several equal steps, none longer than `longest`."""
    count = max(random.choice((1, 2, 5)), ceil(seconds / longest))
    return [seconds / count] * count
