"""Solvers that cheat: for each cheat the conduct that the production solver runs with.

What is wrong is one collaborator: the executor, the first state, the server or the defence. Numbers are made for the
digits task: 8 segments of 50 steps, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from protocol.dispute import defender
from protocol.dispute.moves import Move
from protocol.dispute.parties import Run, frame_at
from protocol.dispute.splitting import block_words, split_move
from protocol.dispute.view import GameView, Phase
from protocol.numerics.types import from_bytes, to_bytes
from protocol.program.execute import Path
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.step import State
from protocol.replay import Executor
from solver.conduct import Conduct, Work
from solver.limits import App, Message, Receive, Send
from solver.shelf import Shelf
from tests.adversaries.perturbing import (
    Perturbation,
    PerturbedExecutor,
    SkippingExecutor,
    doubled,
    find,
    off_by_one,
    one_ulp,
    producer_of_operand,
    producer_of_output,
)

ONE_ULP_STEP = 117  # segment 3, step 17
WEIGHT = 4 * 64 + 31  # row 4, column 31 of the first layer's [512, 64] weights
WRONG_RATE_FROM = 212  # segment 5, step 12: every later step is wrong too
SKIPPED = (251, 300)  # segment 6 from end to end: its checkpoint is the fifth one again
WRONG_DOT_STEP = 330  # segment 7, step 30
LOGIT = 37 * 10 + 7  # row 37, column 7 of the second layer's [64, 10] products
END = 2**32  # no task has as many steps


def perturbed(
    work: Work, path: Path, number: int, element: int, change: Callable[[int], int], first: int, last: int
) -> Executor:
    """Honest but for one element of one instruction in the steps `first` to `last`."""
    wrong = Perturbation(path, number, element, change, first, last)
    return PerturbedExecutor(work.program, work.fixed, work.kernels, [wrong])


def moves_one_weight(work: Work) -> Executor:
    """One weight is one unit in the last place off, in one step: the subtraction at the end of the optimiser."""
    path, number = producer_of_output(work.program.program, 0)
    return perturbed(work, path, number, WEIGHT, one_ulp, ONE_ULP_STEP, ONE_ULP_STEP)


def doubles_the_rate(work: Work) -> Executor:
    """The learning rate that the optimiser reads is doubled from some step on."""
    program = work.program.program
    optimiser = producer_of_output(program, 0)[0][0]
    rate = len(program.instructions[optimiser].operands) - 1
    path, number = producer_of_operand(program, optimiser, rate)
    return perturbed(work, path, number, 0, doubled, WRONG_RATE_FROM, END)


def skips_a_segment(work: Work) -> Executor:
    """Saves itself a segment and hands in the old checkpoint as the new one."""
    return SkippingExecutor(work.program, work.fixed, work.kernels, *SKIPPED)


def falsifies_a_product(work: Work) -> Executor:
    """One wrong integer in the second layer's matrix product, whose rows are longer than a chunk."""
    path, number = find(work.program.program, Op.DOT, "linear", which=1)
    return perturbed(work, path, number, LOGIT, off_by_one, WRONG_DOT_STEP, WRONG_DOT_STEP)


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
