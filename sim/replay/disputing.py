"""Disputes over a task: the engine decides who challenges and wins, and the games on the chain must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from protocol.dispute.view import Verdict
from protocol.tasks.task import GAMES_AT_ONCE
from sim.mechanism.bonds import bond_of
from sim.replay.auditing import Auditing
from sim.replay.claiming import Claim, Claims
from sim.replay.comparison import BOND
from sim.replay.games import Accusation, Sides, answer, commit, open_game, open_late, play
from sim.replay.shadow import Challenge
from sim.replay.stage import Stage
from sim.replay.training import Trained


class Submitted(NamedTuple):
    """A submitted task; `solver` is an account."""

    number: int
    solver: int
    price: int
    serves: bool
    trained: Trained
    auditing: Auditing


class _Made(NamedTuple):
    """A challenge that an account has committed to."""

    challenge: Challenge
    accusation: Accusation
    commitment: bytes
    bond: int
    until: int
    """Last second in which the commitment can be opened."""


class _Game(NamedTuple):
    """A game's number, and the challenge that opened the game."""

    number: int
    made: _Made


def dispute(stage: Stage, task: Submitted, accused: Sequence[Challenge], owed: Sequence[Claim]) -> bool:
    """Play all disputes. Challengers commit, then open games. If some games can win, one of them convicts the
    solver, the other games become moot, and the seats' claims are paid. Otherwise all games are lost.

    Returns whether the solver was convicted.
    """
    made = [_commit(stage, task, number, each) for number, each in enumerate(accused)]
    right = [each for each in made if each.challenge.wins]
    opening = [each for each in made if each.challenge.opens]
    waiting: list[_Made] = []
    if right and right[0].challenge.preempts:
        # The insider convicts before any other challenger opens its commitment.
        waiting = [each for each in opening if each != right[0]]
        opening = right[:1]
    games = [_Game(open_game(stage, task.number, each.accusation, task.trained), each) for each in opening]
    claims = Claims(stage, task.number, task.solver, owed)
    if right:
        rights = [game for game in games if game.made.challenge.wins]
        played = rights[-1] if stage.scenario.newest_first else rights[0]
        _win(stage, task, played, rewarded=right[0].challenge)
        for each in waiting:
            _open_late(stage, task, each, claims)
        for game in games:
            if game != played:
                _moot(stage, task, game)
        seated = {game.made.accusation.seat: game.number for game in games}
        claims.pay({seat: number for seat, number in seated.items() if seat is not None})
    else:
        # Further games wait for a free place, with both clocks stopped.
        for game in games[:GAMES_AT_ONCE]:
            answer(stage, _sides(stage, task, game), game.number, task.trained.run)
        for game in games:
            _lose(stage, task, game)
    for each in made:
        if not each.challenge.opens:
            _forfeit(stage, task, each)
    if right:
        claims.burn()
    return bool(right)


def _commit(stage: Stage, task: Submitted, number: int, each: Challenge) -> _Made:
    """Commit to a challenge of the segment that the engine names. If, in the engine, the challenger found
    this segment false, it must be false in this run too.
    """
    if each.right:
        stage.same("a segment seen to be false", True, each.segment in task.trained.false_segments)
    salt = number.to_bytes(16, "big") + each.late.to_bytes(16, "big")
    accusation = Accusation(each.account, each.seat, each.segment, salt)
    client, amounts = stage.clients[each.account], stage.amounts
    commitment = commit(client, task.number, accusation)
    single = each.seat is not None or each.late
    bond = amounts.bond if single else bond_of(amounts.bond, number)
    stage.books.lock(each.account, BOND, bond)
    stage.booked(f"task {task.number}: {stage.name(each.account)} commits to a challenge")
    until = client.now() + client.deployment.parameters.opening_period
    return _Made(each, accusation, commitment, bond, until)


def _win(stage: Stage, task: Submitted, game: _Game, *, rewarded: Challenge) -> None:
    """Play a game that convicts the solver. The engine rewards `rewarded`, the earliest commitment that can win."""
    # A solver that serves its data can lose a game about a right segment only by silence.
    challenge = game.made.challenge
    answers = task.serves and challenge.right
    due = Verdict.SOLVER_FALSE if answers else Verdict.SOLVER_SILENT
    stage.same("a verdict", due, _run(stage, task, game, answers=answers))
    named = stage.referee.game.conviction(task.number)[1]
    stage.same("the convicted segment", rewarded.segment or 0, named)
    _return_bond(stage, game.made)
    stage.books.close_escrow(owed=task.auditing.owed)
    stage.books.convicted(task.solver, rewarded.account, late=rewarded.late)
    how = stage.judged[-1] if answers else "silence"
    stage.booked(f"task {task.number}: {stage.name(task.solver)} convicted: {how}")


def _lose(stage: Stage, task: Submitted, game: _Game) -> None:
    stage.same("a verdict", Verdict.CHALLENGER_SILENT, _run(stage, task, game, answers=True))
    account = game.made.challenge.account
    stage.books.dismissed(task.solver, account, game.made.bond)
    stage.halved(game.made.bond, task.solver)
    stage.booked(f"task {task.number}: {stage.name(account)} has nothing to show and loses its bond")


def _moot(stage: Stage, task: Submitted, game: _Game) -> None:
    account = game.made.challenge.account
    stage.clients[account].game.close_moot(game.number)
    _return_bond(stage, game.made)
    stage.booked(f"task {task.number}: game of {stage.name(account)} is moot")


def _open_late(stage: Stage, task: Submitted, made: _Made, claims: Claims) -> None:
    account, seat = made.challenge.account, made.accusation.seat
    open_late(stage.clients[account], task.number, made.accusation)
    _return_bond(stage, made)
    if seat is None:
        stage.booked(f"task {task.number}: {stage.name(account)} opens its commitment late")
    else:
        claims.spoke(seat)


def _forfeit(stage: Stage, task: Submitted, made: _Made) -> None:
    account = made.challenge.account
    stage.until(made.until)
    stage.referee.commitments.forfeit(stage.clients[account].address, made.commitment)
    stage.books.forfeited(account, made.bond)
    stage.booked(
        f"task {task.number}: {stage.name(account)} has not opened its commitment and loses its bond"
    )


def _return_bond(stage: Stage, made: _Made) -> None:
    stage.books.release(made.challenge.account, BOND, made.bond)


def _run(stage: Stage, task: Submitted, game: _Game, *, answers: bool) -> Verdict:
    trained, challenge = task.trained, game.made.challenge
    looked = challenge.wins or not trained.false_segments
    run = (trained.checked if task.serves else trained.repeated) if looked else None
    return play(stage, _sides(stage, task, game), game.number, trained.run if answers else None, run)


def _sides(stage: Stage, task: Submitted, game: _Game) -> Sides:
    clients = stage.clients
    return Sides(clients[task.solver], clients[game.made.challenge.account], stage.referee)
