"""Solvers that cheat: for each cheat the conduct that the production solver runs with.

What is wrong is one collaborator: the executor, the first state, the server or the defence.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.dispute import defender
from protocol.dispute.moves import Move
from protocol.dispute.parties import Run, frame_at
from protocol.dispute.splitting import block_words, split_move
from protocol.dispute.view import GameView, Phase
from protocol.numerics.types import from_bytes, to_bytes
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.step import State
from solver.conduct import Conduct, Work
from solver.limits import App, Message, Receive, Send
from solver.shelf import Shelf
from tests.adversaries.executors import (
    doubles_the_rate,
    falsifies_a_product,
    moves_one_weight,
    skips_a_segment,
)


def starts_elsewhere(work: Work, initial: State) -> State:
    """One bit of the first weight is another one before training begins."""
    name, type_ = work.program.state[0], work.program.state_types[0]
    data = bytearray(to_bytes(initial[name], type_.dtype))
    data[0] ^= 1
    return {**initial, name: from_bytes(bytes(data), type_.dtype, type_.shape)}


def says_nothing(_shelf: Shelf) -> App:
    """A server that knows of nothing."""

    async def app(scope: Message, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return app


def covers_up(game: GameView, run: Run) -> Move | None:
    """Defends by the rules, but states block results that fold to its own false number: the first is made to fit."""
    if game.phase is not Phase.SPLIT or game.selection is None or game.demand is not None:
        return defender.next_move(game, run)
    frame = frame_at(run, game.segment, game.step, game.path)
    instruction = frame.program.instructions[game.instruction]
    assert PRIMITIVES[instruction.op] is PRIMITIVES[Op.DOT], "the words of a product are added"
    chosen = game.selection
    words = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    words[0] = (words[0] + chosen.word - sum(words)) % (1 << 64)
    return split_move(game, instruction, words)


CHEATS: Mapping[str, Conduct] = {
    "one-ulp": Conduct(executor=moves_one_weight),
    "wrong-rate": Conduct(executor=doubles_the_rate),
    "skipper": Conduct(executor=skips_a_segment),
    "other-start": Conduct(start=starts_elsewhere),
    "silent": Conduct(executor=falsifies_a_product, app=says_nothing, defence=covers_up),
    "wrong-dot": Conduct(executor=falsifies_a_product, defence=covers_up),
}
"""By the name that `python -m tests.adversaries` takes."""
