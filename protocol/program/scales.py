"""Measures how much precision a step loses to outliers. The measure is max / rms of each row of the operands
of the step's contractions.

A row of p-bit integers is scaled by its largest value, so a value as large as the rms has p - log2(max / rms)
bits left (arithmetic.md section 4). Outliers of activations often grow in training; these measurements show
the outliers before they do harm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protocol.program.execute import Interpreter, Kernel, Site
from protocol.program.library.contractions import CONTRACTED
from protocol.program.library.function import Hint
from protocol.program.opcodes import Op
from protocol.program.step import State, StepProgram


@dataclass(frozen=True, slots=True)
class Scale:
    """The largest max / rms among the rows of one operand of one call.

    `number` is the call's instruction number, and `bits` the number of bits to which the operand is
    quantised.
    """

    function: str
    number: int
    operand: int
    bits: int
    ratio: float

    @property
    def left(self) -> float:
        """Bits left for a value as large as the row's root mean square."""
        return self.bits - math.log2(self.ratio)


class _Watching(Interpreter):
    """An interpreter that runs a step and measures the operands of the step's contractions."""

    def __init__(self, kernels: Mapping[bytes, Kernel], hints: Mapping[bytes, Hint]) -> None:
        super().__init__(kernels)
        self._hints = hints
        self.found: list[Scale] = []

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The interpreter's results; measuring does not change them."""
        if site.instruction.op is Op.CALL:
            hint = self._hints.get(site.program.callee(site.number).id)
            if hint is not None and hint.name in CONTRACTED:
                for k, axis in enumerate(CONTRACTED[hint.name]):
                    bits = int(hint.attributes.get(("px", "py")[k], 13))
                    ratio = largest_over_rms(operands[k], axis)
                    self.found.append(Scale(hint.name, site.number, k, bits, ratio))
        return super().results(site, operands)


def scales(
    program: StepProgram,
    state: State,
    fixed: Sequence[Tensor],
    kernels: Mapping[bytes, Kernel],
    hints: Mapping[bytes, Hint],
) -> list[Scale]:
    """The scales of all operands of contractions in one step from `state`, sorted from the fewest bits left
    to the most.
    """
    watching = _Watching(kernels, hints)
    program.step(state, fixed, watching)
    return sorted(watching.found, key=lambda scale: scale.left)


def largest_over_rms(x: Tensor, axis: int) -> float:
    """The largest max|x| / rms among the rows along `axis` of an f32 tensor.

    For rows of zeros and for rows with a number that is not finite, the ratio counts as 1.
    """
    largest = x.abs().amax(axis)
    rms = torch.linalg.vector_norm(x, dim=axis, dtype=torch.float64) / math.sqrt(x.shape[axis])
    ratio = largest.double() / rms
    return float(torch.where(torch.isfinite(ratio), ratio, 1.0).max())
