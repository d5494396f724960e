"""How far the largest value of a row stands above the ordinary ones, for every contraction of a step.

A row of p-bit integers is scaled by its largest value, so an ordinary value has p - log2(max / rms) bits left
(arithmetic.md section 4). Outliers of activations are known to grow in training; this shows them before they do harm.
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
    """Operand `operand` of call instruction `number`, which quantises it to `bits` bits: its worst row's max / rms."""

    function: str
    number: int
    operand: int
    bits: int
    ratio: float

    @property
    def left(self) -> float:
        """Bits that a value of the row's root mean square has left."""
        return self.bits - math.log2(self.ratio)


class _Watching(Interpreter):
    """Runs a step and measures the operands of its contractions."""

    def __init__(self, kernels: Mapping[bytes, Kernel], hints: Mapping[bytes, Hint]) -> None:
        super().__init__(kernels)
        self._hints = hints
        self.found: list[Scale] = []

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """As the interpreter; measuring does not change results."""
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
    """Both operands of every contraction of one step from `state`, those with the fewest bits left first."""
    watching = _Watching(kernels, hints)
    program.step(state, fixed, watching)
    return sorted(watching.found, key=lambda scale: scale.left)


def largest_over_rms(x: Tensor, axis: int) -> float:
    """The largest max|x| / rms of all rows along an axis of an f32 tensor, 1 where all are zero or not finite."""
    largest = x.abs().amax(axis)
    rms = torch.linalg.vector_norm(x, dim=axis, dtype=torch.float64) / math.sqrt(x.shape[axis])
    ratio = largest.double() / rms
    return float(torch.where(torch.isfinite(ratio), ratio, 1.0).max())
