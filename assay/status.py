"""What the chain says of a task: state, parties, deadlines, seats, games and the way they went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.views import (
    NEVER,
    NOBODY,
    AuditView,
    GameState,
    ItemClaim,
    JuryView,
    Seat,
    TaskStatus,
    TaskView,
)
from protocol.dispute.juries import constants_item, may_object
from protocol.dispute.looks import Look, is_look
from protocol.dispute.view import Phase
from protocol.node.addresses import parsed
from protocol.tasks.bidding import least_undercut
from protocol.tasks.draws import segments_of
from protocol.tasks.task import Terms

UNPLAYED = (TaskStatus.BIDDING, TaskStatus.TRAINING, TaskStatus.REFUNDED)
"""There are no games on tasks that were not submitted."""


@dataclass(frozen=True)
class GameStatus:
    """One game. `path` holds the call instructions that it went into; `phase` is "waiting" while no clock runs."""

    game: int
    challenger: str
    phase: str
    verdict: str
    segment: int
    step: int
    path: tuple[int, ...]
    seconds_left: int | None


@dataclass(frozen=True)
class SeatStatus:
    """One seat, or look. `account` is None while nobody was found; `seconds_left` is None once nothing is awaited from
    it. Its lock is lost where it was `caught`.
    """

    seat: int
    account: str | None
    segments: tuple[int, ...]
    attested: bool
    caught: bool
    seconds_left: int | None

    @property
    def name(self) -> str:
        """For people."""
        return f"{'look' if is_look(self.seat) else 'seat'} {self.seat}"

    def line(self) -> str:
        """For people."""
        left = self.seconds_left
        if self.attested:
            state = "attested, and its lock lost" if self.caught else "attested"
        elif left is None:
            state = "not attested"
        else:
            state = f"{left} s left" if left >= 0 else "to be drawn again"
        segments = ", ".join(map(str, self.segments))
        return f"{self.name}: {self.account or 'nobody found'}, segments {segments}; {state}"


class JuryStep(StrEnum):
    """What an open jury waits for."""

    DRAW = "draw"
    VOTES = "votes"
    OBJECTION = "objection"
    OPENINGS = "openings"
    VERDICT = "verdict"


@dataclass(frozen=True)
class JuryStatus:
    """A claim of a seat, or look, that it cannot fetch an item, a state by its number or the constants (None), and the
    votes on it, of `jurors`. `seconds_left` is the time for what is `awaited`, None for a draw and the verdict.
    """

    seat: int
    state: int | None
    jurors: int
    yes: int
    no: int
    awaited: JuryStep
    seconds_left: int | None

    def line(self) -> str:
        """For people."""
        item = "the constants" if self.state is None else f"state {self.state}"
        votes = f"{self.yes} of {self.jurors} jurors have it, {self.no} do not"
        state = {
            JuryStep.DRAW: "a jury is to be drawn",
            JuryStep.VOTES: f"{votes}; {self.seconds_left} s left to vote",
            JuryStep.OBJECTION: f"{votes}; {self.seconds_left} s left for the claimant to object",
            JuryStep.OPENINGS: f"{votes}; {self.seconds_left} s left to open a chunk",
            JuryStep.VERDICT: f"{votes}; the verdict is due",
        }[self.awaited]
        name = "look" if is_look(self.seat) else "seat"
        return f"{name} {self.seat} claims that it cannot fetch {item}: {state}"


@dataclass(frozen=True)
class TaskStatusReport:
    """One task. Times are seconds from now, None when they do not matter; amounts are token units. `most_bid` is the
    highest that a bid may be, None when none is taken any more; `awaited_round` that of the beacon for which a draw
    waits. Ids are counted by each `market` for itself.
    """

    market: str
    task: int
    status: str
    submitter: str
    solver: str | None
    endpoint: str | None
    price: int | None
    most_bid: int | None
    budget: int
    checkpoints: int
    segments: int
    segment_steps: int
    seconds_left: int | None
    result: bytes | None
    awaited_round: int | None
    seats: tuple[SeatStatus, ...]
    looks: tuple[SeatStatus, ...]
    jury: JuryStatus | None
    games: tuple[GameStatus, ...]

    def lines(self) -> Iterator[str]:
        """For people."""
        left = "" if self.seconds_left is None else f", {max(0, self.seconds_left)} s left"
        yield f"task {self.task}: {self.status}{left}; checkpoint {self.checkpoints} of {self.segments}"
        price = "no bid yet" if self.price is None else f"{self.price / TOKEN:g}"
        yield f"  price {price} of {self.budget / TOKEN:g} tokens; submitter {self.submitter}"
        if self.most_bid is not None:
            yield f"  the next bid must be at most {self.most_bid / TOKEN:g} tokens"
        if self.solver is not None:
            yield f"  solver {self.solver} at {parsed(self.endpoint or '') or 'no announced address'}"
        if self.awaited_round is not None:
            yield f"  a draw waits for round {self.awaited_round} of the beacon, and for the draws before it"
        for seat in (*self.seats, *self.looks):
            yield f"  {seat.line()}"
        if self.jury is not None:
            yield f"  {self.jury.line()}"
        for game in self.games:
            where = f"segment {game.segment or '?'}, step {game.step or '?'}"
            calls = f", calls {'/'.join(map(str, game.path))}" if game.path else ""
            end = f", {game.verdict}" if game.phase == "closed" else f", {game.phase}"
            yield f"  game {game.game}: {where}{calls}{end}; challenger {game.challenger}"


def report(client: Client, tasks: list[int]) -> list[TaskStatusReport]:
    """The status of tasks by id, all at one block. Raises ChainError (Reverted: UnknownTask)."""
    with client.connection.view() as block:
        client.market.ahead(tasks)
        client.audit.ahead(tasks)
        views = [client.market.task(task) for task in tasks]
        games = _games(client, {view.task for view in views if view.status not in UNPLAYED}, block.time)
        return [_report(client, view, games[view.task], block.time) for view in views]


def report_of(client: Client, task: int, games: Mapping[int, tuple[int, ...]], now: int) -> TaskStatusReport:
    """The status of one task whose games, and the call instructions that each went into, are known; inside of a view of
    the block at second `now`. Raises ChainError.
    """
    client.game.ahead(games)
    found = [_game(client.game.game(game), path, now) for game, path in games.items()]
    return _report(client, client.market.task(task), found, now)


def open_tasks(client: Client) -> tuple[list[int], int]:
    """The tasks that are not over, and how many there are in all. Raises ChainError."""
    with client.connection.view():
        tasks = range(1, client.market.tasks() + 1)
        statuses = client.market.statuses(tasks)
    return [task for task, status in zip(tasks, statuses, strict=True) if not status.is_over], len(tasks)


def _report(client: Client, view: TaskView, games: list[GameStatus], now: int) -> TaskStatusReport:
    terms = client.market.terms(view.task)
    audit = client.audit.audit(view.task)
    solver = None if view.bidder == NOBODY else view.bidder
    until = {
        TaskStatus.BIDDING: view.bids_until,
        TaskStatus.TRAINING: view.train_until,
        TaskStatus.SUBMITTED: view.challenge_until,
        TaskStatus.UNPAID: view.challenge_until,
    }.get(view.status)
    return TaskStatusReport(
        client.market.address,
        view.task,
        view.status.name.lower(),
        view.submitter,
        solver,
        client.market.endpoint_of(solver) if solver else None,
        view.price if solver else None,
        _most_bid(view, terms, now),
        terms.budget,
        max(0, view.size - 1),
        terms.segments,
        terms.segment_steps,
        None if until in (None, NEVER) else until - now,
        view.result if any(view.result) else None,
        audit.round if audit.pending else None,
        tuple(_seat(seat, audit, view, terms, now) for seat in client.audit.seats(view.task)),
        tuple(_seat(look, audit, view, terms, now) for look in client.audit.looks(view.task)),
        _jury(client, view, terms, now) if view.status is TaskStatus.SUBMITTED else None,
        tuple(games),
    )


def segments_to_replay(seat: Seat, audit: AuditView, terms: Terms) -> list[int]:
    """The segments of a drawn seat, in its order; of a look the one."""
    each = terms.segments_per_verifier
    if not is_look(seat.number):
        return list(segments_of(audit.seed, seat.number, terms.segments, each))
    look = Look.of(seat.number)
    return [segments_of(audit.seed, look.seat(each), terms.segments, each)[look.position(each)]]


def _seat(seat: Seat, audit: AuditView, view: TaskView, terms: Terms, now: int) -> SeatStatus:
    due = view.status is TaskStatus.SUBMITTED and not seat.attested
    return SeatStatus(
        seat.number,
        None if seat.is_empty else seat.account,
        tuple(segments_to_replay(seat, audit, terms)),
        seat.attested,
        seat.caught,
        seat.until - now if due else None,
    )


def _jury(client: Client, view: TaskView, terms: Terms, now: int) -> JuryStatus | None:
    claim = client.juries.claim_of(view.task) if terms.jurors else None
    jury = None if claim is None else client.audit.jury(view.task)
    if claim is None or jury is None:
        return None
    return JuryStatus(
        claim.seat,
        None if claim.item == constants_item(terms.segments) else claim.item,
        terms.jurors,
        jury.yes.bit_count(),
        jury.no.bit_count(),
        *awaited(claim, jury, terms, now),
    )


def awaited(claim: ItemClaim, jury: JuryView, terms: Terms, now: int) -> tuple[JuryStep, int | None]:
    """What an open jury waits for, and the seconds that are left for it: IJuries.close takes the same times."""
    if jury.pending:
        return JuryStep.DRAW, None
    steps = [(JuryStep.VOTES, jury.until)]
    if claim.until:
        steps.append((JuryStep.OPENINGS, claim.until))
    elif may_object(jury.yes.bit_count(), jury.no.bit_count(), terms.jurors):
        steps.append((JuryStep.OBJECTION, jury.until + terms.move_time))
    return next(((step, until - now) for step, until in steps if now <= until), (JuryStep.VERDICT, None))


def _most_bid(view: TaskView, terms: Terms, now: int) -> int | None:
    if view.status is not TaskStatus.BIDDING or now > view.bids_until:
        return None
    if view.bidder == NOBODY:
        return terms.budget
    most = view.price - least_undercut(view.price, view.overtime // terms.extension)
    return None if most < 0 else most


def games_on(client: Client, tasks: Collection[int]) -> list[GameState]:
    """The games on these tasks, by number. Inside of a view."""
    numbers = range(1, client.game.games() + 1) if tasks else range(0)
    client.game.ahead(numbers)
    return [state for state in map(client.game.game, numbers) if state.task in tasks]


def _games(client: Client, tasks: Collection[int], now: int) -> defaultdict[int, list[GameStatus]]:
    """The games on these tasks, by task."""
    states = games_on(client, tasks)
    paths = _paths(client) if states else {}
    found: defaultdict[int, list[GameStatus]] = defaultdict(list)
    for state in states:
        found[state.task].append(_game(state, tuple(paths.get(state.game, ())), now))
    return found


def _game(state: GameState, path: tuple[int, ...], now: int) -> GameStatus:
    live = state.phase is not Phase.CLOSED
    return GameStatus(
        state.game,
        state.challenger,
        "waiting" if state.waits else state.phase.name.lower(),
        state.verdict.name.lower(),
        state.segment,
        state.step,
        path,
        None if state.waits or not live else state.deadline - now,
    )


def _paths(client: Client) -> dict[int, list[int]]:
    """Call instructions that each game went into, by game."""
    game = client.game
    (topic,) = (topic for topic, event in game.contract.events.items() if event["name"] == "CallSelected")
    contracts = {game.address: game.contract}
    follower = Follower(client.connection, contracts, client.deployment.block, topics=[topic])
    paths: defaultdict[int, list[int]] = defaultdict(list)
    for event in follower.poll().events:
        paths[int(event.arguments["game"])].append(int(event.arguments["n"]))
    return paths
