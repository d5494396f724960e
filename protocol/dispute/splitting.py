"""Splitting a long row: the solver states block results, and the challenger names the first wrong part.

dispute.md section 5.

A split has at most 128 parts. The number of blocks in each part is a power of 128; only the last part may
have fewer. So a row of up to 128 blocks needs one round, and a longer row needs a few.
"""

from __future__ import annotations

from typing import cast

from protocol.dispute.evidence import operand_openings
from protocol.dispute.moves import Move
from protocol.dispute.openings import open_instruction
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.provider import Frame
from protocol.dispute.view import GameView, Selection
from protocol.program.instruction import Instruction
from protocol.program.primitives import PRIMITIVES, Reduction

MAX_WORDS = 128
"""Maximum number of words in one split. 128 blocks of 256 four-byte elements are a row of 32,768 elements."""


def part_size(blocks: int) -> int:
    """Blocks per part when `blocks` blocks are split: the least power of 128 that gives at most 128 parts."""
    size = 1
    while -(-blocks // size) > MAX_WORDS:
        size *= MAX_WORDS
    return size


def parts(lo: int, hi: int) -> list[tuple[int, int]]:
    """The parts of blocks [lo, hi), each as a range (start, end) of blocks."""
    size = part_size(hi - lo)
    return [(at, min(at + size, hi)) for at in range(lo, hi, size)]


def block_words(frame: Frame, instruction: Instruction, element: int, lo: int, hi: int) -> list[int]:
    """The words of the parts into which blocks [lo, hi) of an element's row are split, computed from the
    frame's own operands.
    """
    primitive = cast(Reduction, PRIMITIVES[instruction.op])
    values = [frame.value(operand.leaf) for operand in instruction.operands]
    return [primitive.part_result(instruction, element, start, end, values) for start, end in parts(lo, hi)]


def state_words(game: GameView, frame: Frame) -> Move:
    """The solver's answer when an element or a part has been selected: the words of the parts into which the
    selection is split.
    """
    assert game.selection is not None
    instruction = frame.program.instructions[game.instruction]
    chosen = game.selection
    words = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    return split_move(game, instruction, words)


def split_move(game: GameView, instruction: Instruction, words: list[int]) -> Move:
    """The move that states `words` for the current selection."""
    return Move(
        "split",
        (game.game, game.head, instruction.encode(), game.selection, words),
        f"{len(words)} block results",
    )


def answer_split(game: GameView, frame: Frame, trace: PartialTree) -> Move:
    """The challenger's answer to stated words. It selects the first part whose word differs from our own. If
    this part is a single block, it is judged; otherwise it is split again.
    """
    assert game.selection is not None
    chosen = game.selection
    instruction = frame.program.instructions[game.instruction]
    own = block_words(frame, instruction, chosen.element, chosen.lo, chosen.hi)
    part = next(k for k, (a, b) in enumerate(zip(own, game.words, strict=True)) if a != b)
    start, end = parts(chosen.lo, chosen.hi)[part]
    words = list(game.words)
    if end - start > 1:
        return Move(
            "selectBlock",
            (game.game, game.head, instruction.encode(), chosen, words, part),
            f"part {part}: blocks {start} to {end - 1}",
        )
    operands, chunks = operand_openings(frame, trace, instruction, chosen.element, start)
    opened = open_instruction(frame.program, game.instruction)
    return Move(
        "judgeBlock",
        (game.game, game.head, opened, chosen, words, part, operands, chunks),
        f"block {start} of element {chosen.element}",
    )


__all__ = [
    "MAX_WORDS",
    "Selection",
    "answer_split",
    "block_words",
    "part_size",
    "parts",
    "split_move",
    "state_words",
]
