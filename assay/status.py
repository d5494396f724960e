"""Reads the status of a task from the chain: state, parties, deadlines, seats, games and the call paths of
games. `task_status` defines the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from assay.names import task_name
from assay.task_status import GameStatus, JuryStatus, JuryStep, SeatStatus, TaskStatusReport
from protocol.chain.client import Client
from protocol.chain.events import Follower
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
from protocol.node.home import Home
from protocol.tasks.bidding import least_undercut
from protocol.tasks.draws import segments_of
from protocol.tasks.task import Terms

UNPLAYED = (TaskStatus.BIDDING, TaskStatus.TRAINING, TaskStatus.REFUNDED)
"""Statuses in which a task has no games, because no solver has submitted a result."""


def report(client: Client, tasks: list[int], *, brief: bool = False) -> list[TaskStatusReport]:
    """The status of these tasks, all at one block. With `brief`, the status of a task that is over does not
    include its seats, looks and games. Raises ChainError (Reverted: UnknownTask).
    """
    with client.connection.view() as block:
        client.market.ahead(tasks)
        views = [client.market.task(task) for task in tasks]
        whole = [view.task for view in views if not (brief and view.status.is_over)]
        client.audit.ahead(whole)
        played = {view.task for view in views if view.status not in UNPLAYED}
        games = _games(client, played.intersection(whole), block.time)
        return [
            _report(client, view, games[view.task], block.time)
            if not (brief and view.status.is_over)
            else _brief(client, view, block.time)
            for view in views
        ]


def report_of(client: Client, task: int, games: Mapping[int, tuple[int, ...]], now: int) -> TaskStatusReport:
    """The status of one task. `games` has a key for each of the task's games. The value is the call
    instructions that the game descended into. Must be called inside a view of a block; `now` is that block's
    time. Raises ChainError.
    """
    client.game.ahead(games)
    found = [_game(client.game.game(game), path, now) for game, path in games.items()]
    return _report(client, client.market.task(task), found, now)


def open_tasks(client: Client) -> tuple[list[int], int]:
    """The tasks that are not over, and the number of all tasks. Raises ChainError."""
    with client.connection.view():
        return open_numbers(client)


def open_numbers(client: Client) -> tuple[list[int], int]:
    """Like `open_tasks`, for callers inside a view."""
    tasks = range(1, client.market.tasks() + 1)
    statuses = client.market.statuses(tasks)
    return [task for task, status in zip(tasks, statuses, strict=True) if not status.is_over], len(tasks)


def _report(client: Client, view: TaskView, games: list[GameStatus], now: int) -> TaskStatusReport:
    terms = client.market.terms(view.task)
    audit = client.audit.audit(view.task)
    return replace(
        _brief(client, view, now),
        endpoint=None if view.bidder == NOBODY else client.market.endpoint_of(view.bidder),
        most_bid=_most_bid(view, terms, now),
        awaited_round=audit.round if audit.pending else None,
        seats=tuple(_seat(seat, audit, view, terms, now) for seat in client.audit.seats(view.task)),
        looks=tuple(_seat(look, audit, view, terms, now) for look in client.audit.looks(view.task)),
        jury=_jury(client, view, terms, now) if view.status is TaskStatus.SUBMITTED else None,
        games=tuple(games),
    )


def _brief(client: Client, view: TaskView, now: int) -> TaskStatusReport:
    """The part of a task's status that comes from the market contract, together with the task's name, which
    comes from the home folder.
    """
    terms = client.market.terms(view.task)
    solver = None if view.bidder == NOBODY else view.bidder
    until = {
        TaskStatus.BIDDING: view.bids_until,
        TaskStatus.TRAINING: view.train_until,
        TaskStatus.SUBMITTED: view.challenge_until,
        TaskStatus.UNPAID: view.challenge_until,
    }.get(view.status)
    return TaskStatusReport(
        market=client.market.address,
        task=view.task,
        name=task_name(Home.find(), terms.bundle_hash),
        status=view.status.name.lower(),
        submitter=view.submitter,
        solver=solver,
        endpoint=None,
        price=view.price if solver else None,
        most_bid=None,
        budget=terms.budget,
        checkpoints=max(0, view.size - 1),
        segments=terms.segments,
        segment_steps=terms.segment_steps,
        seconds_left=None if until in (None, NEVER) else until - now,
        result=view.result if any(view.result) else None,
        awaited_round=None,
        seats=(),
        looks=(),
        jury=None,
        games=(),
    )


def segments_to_replay(seat: Seat, audit: AuditView, terms: Terms) -> list[int]:
    """The segments that a drawn seat replays, in the order of the draw. A look replays one segment."""
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
    """What an open jury waits for, and the seconds left for this. The seconds are None if the jury waits for
    the draw or the verdict. The times are those of IJuries.close.
    """
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
    """The games on these tasks, in the order of their numbers. Must be called inside a view."""
    numbers = range(1, client.game.games() + 1) if tasks else range(0)
    client.game.ahead(numbers)
    return [state for state in map(client.game.game, numbers) if state.task in tasks]


def _games(client: Client, tasks: Collection[int], now: int) -> defaultdict[int, list[GameStatus]]:
    """The status of the games on these tasks, by task."""
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
    """The call instructions that each game descended into, by game."""
    game = client.game
    (topic,) = (topic for topic, event in game.contract.events.items() if event["name"] == "CallSelected")
    contracts = {game.address: game.contract}
    follower = Follower(client.connection, contracts, client.deployment.block, topics=[topic])
    paths: defaultdict[int, list[int]] = defaultdict(list)
    for event in follower.poll().events:
        paths[int(event.arguments["game"])].append(int(event.arguments["n"]))
    return paths
