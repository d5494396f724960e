"""What the chain says of a task: state, parties, deadlines, duties, games and the way they went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, Duty, GameState, TaskStatus, TaskView
from protocol.dispute.view import Phase
from protocol.node.addresses import parsed
from protocol.tasks.bidding import least_undercut
from protocol.tasks.task import Terms


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
class TaskStatusReport:
    """One task. Times are seconds from now, None when they do not matter; amounts are token units. `most_bid` is the
    highest that a bid may be, None when none is taken any more.
    """

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
    duties: tuple[Duty, ...]
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
        for duty in self.duties:
            done = "attested" if duty.attested else "not attested yet"
            yield f"  duty {duty.number}: segment {duty.segment}, {duty.verifier}, {done}"
        for game in self.games:
            where = f"segment {game.segment or '?'}, step {game.step or '?'}"
            calls = f", calls {'/'.join(map(str, game.path))}" if game.path else ""
            end = f", {game.verdict}" if game.phase == "closed" else f", {game.phase}"
            yield f"  game {game.game}: {where}{calls}{end}; challenger {game.challenger}"


def report(client: Client, tasks: list[int]) -> list[TaskStatusReport]:
    """The status of tasks by id. Raises ChainError (Reverted: UnknownTask)."""
    now = client.now()
    games = _games(client)
    return [_report(client, client.market.task(task), games[task], now) for task in tasks]


def _report(client: Client, view: TaskView, games: list[GameStatus], now: int) -> TaskStatusReport:
    terms = client.market.terms(view.task)
    solver = None if view.bidder == NOBODY else view.bidder
    until = {
        TaskStatus.BIDDING: view.bids_until,
        TaskStatus.TRAINING: view.train_until,
        TaskStatus.SUBMITTED: view.challenge_until,
    }.get(view.status)
    return TaskStatusReport(
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
        None if until is None else until - now,
        view.result if any(view.result) else None,
        tuple(client.audit.duties(view.task)),
        tuple(games),
    )


def _most_bid(view: TaskView, terms: Terms, now: int) -> int | None:
    if view.status is not TaskStatus.BIDDING or now > view.bids_until:
        return None
    if view.bidder == NOBODY:
        return terms.budget
    most = view.price - least_undercut(view.price, view.overtime // terms.extension)
    return None if most < 0 else most


def _games(client: Client) -> defaultdict[int, list[GameStatus]]:
    """All games by task."""
    paths = _paths(client)
    now = client.now()
    found: defaultdict[int, list[GameStatus]] = defaultdict(list)
    for number in range(1, client.game.games() + 1):
        state = client.game.game(number)
        found[state.task].append(_game(state, tuple(paths[number]), now))
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


def _paths(client: Client) -> defaultdict[int, list[int]]:
    """Call instructions that each game went into, by game."""
    game = client.game
    follower = Follower(client.connection, {game.address: game.contract}, client.deployment.block)
    paths: defaultdict[int, list[int]] = defaultdict(list)
    for event in follower.poll().events:
        if event.name == "CallSelected":
            paths[int(event.arguments["game"])].append(int(event.arguments["n"]))
    return paths
