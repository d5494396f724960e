"""Executors that compute chosen wrong numbers in the tiny task. The task has 3 segments of 4 steps; both are
counted from 1.
"""

from __future__ import annotations

from protocol.execution.replay import Executor, Work
from protocol.program.opcodes import Op
from tests.adversaries.executors import perturbed
from tests.adversaries.perturbing import find, producer_of_output

WRONG_STEP = 6  # segment 2, step 2
WEIGHT = 31


def moves_a_weight_far(work: Work) -> Executor:
    """An executor that makes one weight wrong by a large amount in one step. (The task halves the weights in
    each step, so a small error would vanish before the segment ends.)
    """
    path, number = producer_of_output(work.program.program, 0)
    return perturbed(work, path, number, WEIGHT, _far, WRONG_STEP, WRONG_STEP)


def moves_a_half_far(work: Work) -> Executor:
    """An executor that makes one weight wrong by a large amount in one step, inside the call that halves the
    weights.
    """
    path, number = find(work.program.program, Op.MUL)
    return perturbed(work, path, number, WEIGHT, _far, WRONG_STEP, WRONG_STEP)


def _far(bits: int) -> int:
    return bits ^ 0x0040_0000
