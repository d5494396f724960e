"""`scales` finds outliers in the rows of contractions' operands, and measures both operands of each contraction."""

from __future__ import annotations

import math

import torch

from examples import gpt
from protocol.program.library import kernels
from protocol.program.scales import largest_over_rms, scales


def test_an_outlier_is_found_where_it_stands() -> None:
    captured = gpt.build(10)
    program = captured.step_program
    state = captured.initial_state(1)
    name = "blocks.1.narrow.weight"
    state[name] = state[name].clone()
    state[name][5, 7] = 1e6
    known = kernels(program.program, captured.hints)
    found = scales(program, state, captured.fixed, known, captured.hints)
    worst = next(scale for scale in found if scale.function == "linear" and scale.operand == 1)
    width = state[name].shape[1]
    assert math.isclose(worst.ratio, math.sqrt(width), rel_tol=1e-6), "one value rules a row of this width"
    assert worst.left == worst.bits - math.log2(worst.ratio)
    operand = program.program.instructions[worst.number].operands[1]
    assert program.program.leaf_type(operand.leaf).shape == tuple(state[name].shape)


def test_every_contraction_is_measured_by_its_bits() -> None:
    captured = gpt.build(10)
    program = captured.step_program
    known = kernels(program.program, captured.hints)
    found = scales(program, captured.initial_state(1), captured.fixed, known, captured.hints)
    assert len(found) == 2 * len({scale.number for scale in found})
    assert {scale.bits for scale in found} == {13, 20}
    assert [scale.left for scale in found] == sorted(scale.left for scale in found)


def test_rows_without_a_ratio_count_as_ordinary() -> None:
    assert largest_over_rms(torch.zeros(3, 4), -1) == 1.0
    assert largest_over_rms(torch.full((3, 4), torch.inf), -1) == 1.0
    assert largest_over_rms(torch.tensor([[3.0, 0.0, 0.0, 0.0]]), -1) == 2.0
