"""Executors for the digits task that are honest except for chosen wrong numbers or skipped steps.

Solvers use them to cheat; the false accuser uses one to accuse an honest solver. The steps and elements to
falsify are chosen for the digits task, which has 8 segments of 50 steps. Segments and steps are counted from
1. The executors for the GPT task are in `transformer`.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.execution.replay import Executor, Work
from protocol.program.execute import Path
from protocol.program.opcodes import Op
from tests.adversaries.perturbing import (
    Perturbation,
    PerturbedExecutor,
    SkippingExecutor,
    doubled,
    find,
    one_ulp,
    producer_of_operand,
    producer_of_output,
    shifted,
)

ONE_ULP_STEP = 117  # segment 3, step 17
WEIGHT = 4 * 64 + 31  # row 4, column 31 of the first layer's [512, 64] weights
WRONG_RATE_FROM = 212  # segment 5, step 12: every later step is wrong too
SKIPPED = (251, 300)  # all of segment 6: its checkpoint repeats the fifth one
WRONG_DOT_STEP = 330  # segment 7, step 30
LOGIT = 37 * 10 + 7  # row 37, column 7 of the second layer's [64, 10] products
END = 2**32  # no task has as many steps


def perturbed(
    work: Work, path: Path, number: int, element: int, change: Callable[[int], int], first: int, last: int
) -> Executor:
    """An executor that falsifies one element of one instruction in steps `first` to `last`."""
    wrong = Perturbation(path, number, element, change, first, last)
    return PerturbedExecutor(work.program, work.fixed, work.kernels, [wrong])


def moves_one_weight(work: Work) -> Executor:
    """An executor that moves one weight by one ulp in the optimiser's last subtraction of one step."""
    path, number = producer_of_output(work.program.program, 0)
    return perturbed(work, path, number, WEIGHT, one_ulp, ONE_ULP_STEP, ONE_ULP_STEP)


def doubles_the_rate(work: Work) -> Executor:
    """An executor that doubles the learning rate that the optimiser reads, from step `WRONG_RATE_FROM` on."""
    program = work.program.program
    optimiser = producer_of_output(program, 0)[0][0]
    rate = len(program.instructions[optimiser].operands) - 1
    path, number = producer_of_operand(program, optimiser, rate)
    return perturbed(work, path, number, 0, doubled, WRONG_RATE_FROM, END)


def skips_a_segment(work: Work) -> Executor:
    """An executor that skips the steps of one segment. So the checkpoint at the end of this segment repeats
    the checkpoint before it.
    """
    return SkippingExecutor(work.program, work.fixed, work.kernels, *SKIPPED)


def falsifies_a_product(work: Work) -> Executor:
    """An executor that falsifies one sum in the second layer's matrix product. The operands of this product
    have rows that are longer than a chunk.
    """
    path, number = find(work.program.program, Op.DOT, "linear", which=1)
    return perturbed(work, path, number, LOGIT, shifted, WRONG_DOT_STEP, WRONG_DOT_STEP)
