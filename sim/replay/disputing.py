"""Disputes over a task: who challenges and wins is the engine's word, which the games on the chain must bear out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from protocol.dispute.view import Verdict
from sim.replay.auditing import Auditing
from sim.replay.comparison import BOND, STAKE
from sim.replay.games import Accusation, Sides, commit, open_game, play
from sim.replay.shadow import Challenge
from sim.replay.stage import Stage
from sim.replay.training import Trained


class Submitted(NamedTuple):
    """A task that was submitted: `solver` is an account."""

    number: int
    solver: int
    price: int
    serves: bool
    trained: Trained
    auditing: Auditing


class _Game(NamedTuple):
    """A challenge and the number of its game."""

    number: int
    challenge: Challenge


def dispute(stage: Stage, task: Submitted, accused: Sequence[Challenge]) -> bool:
    """All commit, then open; who wins plays first. Tell whether the solver was convicted."""
    named = [_accusation(stage, task, number, each) for number, each in enumerate(accused)]
    for each in named:
        commit(stage.clients[each.account], task.number, each)
        stage.books.lock(each.account, BOND, stage.amounts.challenge_bond)
        stage.booked(f"task {task.number}: {stage.name(each.account)} commits to a challenge")
    games = [
        _Game(open_game(stage, task.number, name, task.trained), each)
        for name, each in zip(named, accused, strict=True)
    ]
    right = [game for game in games if game.challenge.wins]
    if not right:
        for game in games:
            _lose(stage, task, game)
        return False
    played = right[-1] if stage.scenario.newest_first else right[0]
    _win(stage, task, played, rewarded=right[0].challenge.account)
    for game in games:
        if game != played:
            _moot(stage, task, game)
    return True


def _accusation(stage: Stage, task: Submitted, number: int, each: Challenge) -> Accusation:
    """Whoever has looked names the first false segment that it saw; who has not names none that is false.

    By chance it could: then the contracts would reward it before whoever looked and committed later.
    """
    segment, false = None, task.trained.false_segments
    if task.serves and (each.wins or not false):
        if each.seat is not None:
            false = false.intersection(task.auditing.segments(each.seat)) or false
        segment = min(false, default=stage.scenario.parameters.segments)
    salt = number.to_bytes(16, "big") + each.late.to_bytes(16, "big")
    return Accusation(each.account, segment, salt)


def _win(stage: Stage, task: Submitted, game: _Game, *, rewarded: int) -> None:
    """The solver is convicted; the engine rewards whoever committed first of those that are right."""
    # A solver that serves, and loses a game about nothing false, has lost it by being silent.
    answers = task.serves and bool(task.trained.false_segments)
    due = Verdict.SOLVER_FALSE if answers else Verdict.SOLVER_SILENT
    stage.same("a verdict", due, _run(stage, task, game, answers=answers))
    stage.books.release(game.challenge.account, BOND, stage.amounts.challenge_bond)
    stage.books.release(task.solver, STAKE, stage.amounts.stake)
    stage.books.close_escrow(owed=not task.auditing.accounts)
    stage.books.convicted(task.solver, rewarded)
    how = stage.judged[-1] if answers else "silence"
    stage.booked(f"task {task.number}: {stage.name(task.solver)} convicted: {how}")


def _lose(stage: Stage, task: Submitted, game: _Game) -> None:
    stage.same("a verdict", Verdict.CHALLENGER_SILENT, _run(stage, task, game, answers=True))
    stage.books.dismissed(task.solver, game.challenge.account)
    who = stage.name(game.challenge.account)
    stage.booked(f"task {task.number}: {who} has nothing to show and loses its bond")


def _moot(stage: Stage, task: Submitted, game: _Game) -> None:
    account = game.challenge.account
    stage.clients[account].game.close_moot(game.number)
    stage.books.release(account, BOND, stage.amounts.challenge_bond)
    stage.booked(f"task {task.number}: game of {stage.name(account)} is moot")


def _run(stage: Stage, task: Submitted, game: _Game, *, answers: bool) -> Verdict:
    clients = stage.clients
    trained = task.trained
    looked = game.challenge.wins or not trained.false_segments
    run = (trained.checked if task.serves else trained.repeated) if looked else None
    sides = Sides(clients[task.solver], clients[game.challenge.account], stage.referee)
    return play(stage, sides, game.number, trained.run if answers else None, run)
