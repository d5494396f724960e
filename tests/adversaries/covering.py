"""A defence that covers up a false element: it follows the rules, but the block results that it posts fold
to that element.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.dispute import defender
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run, frame_at
from protocol.dispute.splitting import block_words, split_move
from protocol.dispute.view import GameView, Phase
from protocol.program.opcodes import Op

INFINITY = 0x7F80_0000
"""The bits of f32 infinity, which is greater than every other number."""


def all_covered_up(game: GameView, run: Run) -> Sequence[Move]:
    """All moves that the solver owes now. They are honest, except that splits are covered up (`covers_up`)."""
    if game.demand is not None:
        return defender.moves(game, run)
    move = covers_up(game, run)
    return () if move is None else (move,)


def covers_up(game: GameView, run: Run) -> Move | None:
    """The honest defence's next move, except that the block results of a split fold to the claimed element."""
    if game.phase is not Phase.SPLIT or game.selection is None or game.demand is not None:
        return defender.next_move(game, run)
    frame = frame_at(run, game.segment, game.step, game.path)
    instruction = frame.program.instructions[game.instruction]
    chosen = game.selection
    words = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    return split_move(game, instruction, fitted(instruction.op, words, chosen.word))


def fitted(op: Op, words: list[int], claimed: int) -> list[int]:
    """Block results that fold to `claimed`. For sums and argmax, only the first one differs from `words`."""
    if op in (
        Op.DOT,
        Op.SUM,
        Op.SCATTER_SUM,
        Op.PREFIX_SUM,
    ):  # added modulo 2^64: the first takes the difference
        return [(words[0] + claimed - sum(words)) % (1 << 64), *words[1:]]
    if op is Op.ARGMAX:  # the claimed index, at an infinity in the first block
        return [INFINITY << 32 | claimed, *words[1:]]
    return [claimed] * len(words)  # exponents and maxima: the maximum of equal words
