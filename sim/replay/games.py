"""Disputes of a replay: commitment, opening, and both sides' moves, which `protocol.dispute` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from protocol.chain.client import Client
from protocol.chain.game_view import GameReader
from protocol.commitments import segment_tree
from protocol.dispute import challenger, defender
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.in_process import Serving, Silent
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment
from protocol.dispute.moves import Move
from protocol.dispute.openings import open_leaf
from protocol.dispute.provider import Provider, Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView, Phase, Verdict
from protocol.program.program import Program
from sim.errors import SimError
from sim.replay.stage import Stage
from sim.replay.training import Trained

MAX_TURNS: Final = 200


class EndlessGame(SimError):
    """A game that did not end, which is a defect."""


@dataclass(frozen=True)
class Accusation:
    """One challenge. `seat` is None for a challenger without a seat; `segment` is None if the game begins
    without one.
    """

    account: int
    seat: int | None
    segment: int | None
    salt: bytes

    @property
    def place(self) -> int:
        """The seat as the contracts encode it."""
        return NO_SEAT if self.seat is None else self.seat

    @property
    def named(self) -> int:
        """The segment as the contracts encode it."""
        return SEGMENT_UNKNOWN if self.segment is None else self.segment


def commit(client: Client, task: int, accusation: Accusation) -> bytes:
    """Make the priority commitment, which locks the bond, and return it."""
    commitment = priority_commitment(
        client.deployment.chain_id,
        client.commitments.address,
        task,
        accusation.named,
        client.address,
        accusation.salt,
    )
    client.commitments.commit(task, accusation.place, commitment)
    return commitment


def open_late(client: Client, task: int, accusation: Accusation) -> None:
    """Open the commitment after the conviction. The bond returns, and a seat receives what it is owed."""
    client.commitments.open_late(task, accusation.named, accusation.salt, accusation.place)


def open_game(stage: Stage, task: int, accusation: Accusation, trained: Trained) -> int:
    """Open the game of a commitment and return its number."""
    client = stage.clients[accusation.account]
    stage.devnet.mine()  # A commitment cannot be opened in its own block.
    if accusation.segment is None:
        return client.game.challenge_blind(task, accusation.salt)[0]
    tree, i = segment_tree(trained.roots), accusation.segment
    before, after = open_leaf(tree, i - 1, trained.roots[i - 1]), open_leaf(tree, i, trained.roots[i])
    return client.game.challenge(task, i, accusation.salt, before, after)[0]


class Sides(NamedTuple):
    """The two players of a game, and the referee that calls timeouts."""

    solver: Client
    challenger: Client
    referee: Client


def play(stage: Stage, sides: Sides, game: int, record: Run | None, own: Run | None) -> Verdict:
    """Play a game to its end. When the side to move has no move, the referee calls the timeout.
    `stage.judged` receives the elements that the EVM judges.

    `record` is the solver's run, or None if the solver is silent. `own` is the challenger's run, or None if
    the challenger has not replayed.
    """
    program = stage.training.program.program
    provider: Provider = Silent() if record is None else Serving(record)
    reader = GameReader(sides.challenger.game, game, program, sides.challenger.deployment.block)
    revealed = Revealed()
    for _ in range(MAX_TURNS):
        view = reader.view()
        if view.phase is Phase.CLOSED:
            return view.verdict
        reader.reveal_to(revealed)
        mover = sides.solver if view.solver_to_move else sides.challenger
        move = (
            _solver_move(view, record)
            if view.solver_to_move
            else _challenger_move(view, own, revealed, provider)
        )
        if move is None:
            deadline = sides.referee.game.game(game).deadline
            stage.devnet.skip(max(0, deadline - sides.referee.now()) + 1)
            sides.referee.game.time_out(game)
            continue
        receipt = mover.game.send_move(move, view.head)
        for event in mover.game.events(receipt):
            if event.name in ("Judged", "EdgeJudged"):
                stage.judged.append(_element(program, view.path, int(event.arguments["n"])))
    raise EndlessGame(
        f"game {game}: expected an end within {MAX_TURNS} turns, got none; report this as a defect"
    )


def answer(stage: Stage, sides: Sides, game: int, record: Run) -> None:
    """Let the solver move for as long as it is the solver's turn and the solver has a move. This is done at
    once, because the solver's clocks run in all open games at the same time. The moves take no time on the
    chain.
    """
    reader = GameReader(
        sides.challenger.game, game, stage.training.program.program, sides.challenger.deployment.block
    )
    while (view := reader.view()).solver_to_move and (move := defender.next_move(view, record)):
        sides.solver.game.send_move(move, view.head)


def _solver_move(view: GameView, record: Run | None) -> Move | None:
    return None if record is None else defender.next_move(view, record)


def _challenger_move(view: GameView, own: Run | None, revealed: Revealed, provider: Provider) -> Move | None:
    try:
        return None if own is None else challenger.next_move(view, own, revealed, provider)
    except NothingToChallenge:
        return None


def _element(program: Program, path: tuple[int, ...], number: int) -> str:
    """The names of the nested programs that lead to an instruction, and its opcode."""
    names = [program.name]
    for call in path:
        program = program.callee(call)
        names.append(program.name)
    return f"{' > '.join(names)}, instruction {number} ({program.instructions[number].op.label})"
