"""Executors for the GPT task that are honest except for chosen wrong numbers. The task has 5 segments of 20
steps; segments and steps are counted from 1.
"""

from __future__ import annotations

from protocol.execution.replay import Executor, Work
from protocol.program.opcodes import Op
from tests.adversaries.executors import perturbed
from tests.adversaries.perturbing import doubled, find, one_ulp, producer_of_output

SECOND_MOMENT = "blocks.0.widen.weight.exp_avg_sq"
SECOND_MOMENT_STEP = 33  # segment 2, step 13
SECOND_MOMENT_ELEMENT = 70 * 32 + 9  # row 70, column 9 of [128, 32]
MASK_STEP = 47  # segment 3, step 7
MASK_ELEMENT = 2 * 32 * 32 + 5 * 32 + 11  # window 2, position 5, channel 11 of [8, 32, 32]
DENOMINATOR_STEP = 68  # segment 4, step 8
DENOMINATOR_ELEMENT = (3 * 2 + 1) * 32 + 30  # window 3, head 1, query 30 of [8, 2, 32, 1]


def moves_second_moment(work: Work) -> Executor:
    """An executor that moves one element of Adam's second moment by one ulp in one step."""
    program = work.program
    path, number = producer_of_output(program.program, program.state.index(SECOND_MOMENT))
    step = SECOND_MOMENT_STEP
    return perturbed(work, path, number, SECOND_MOMENT_ELEMENT, one_ulp, step, step)


def keeps_what_is_dropped(work: Work) -> Executor:
    """An executor that inverts one element of the first dropout mask in one step."""
    path, number = find(work.program.program, Op.LT, "keep_mask")
    return perturbed(work, path, number, MASK_ELEMENT, _other, MASK_STEP, MASK_STEP)


def doubles_a_denominator(work: Work) -> Executor:
    """An executor that doubles one denominator of attention's softmax in one step. This denominator is the
    sum of a row's exponentials.
    """
    path, number = find(work.program.program, Op.ROUND_SCALED, "softmax")
    return perturbed(work, path, number, DENOMINATOR_ELEMENT, doubled, DENOMINATOR_STEP, DENOMINATOR_STEP)


def _other(bit: int) -> int:
    """1 for 0 and 0 for 1."""
    return 1 - bit
