"""Executors that are honest except for chosen values or skipped steps.

A perturbation names an instruction (by its call path and number), an element of its result, and a change of
the element's bits. Everything else is computed honestly from the changed value, in `step` and in `trace`
alike. So the trees are consistent except for that one value, and a game ends at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.dispute.provider import Frame
from protocol.numerics.types import from_bytes, to_bytes
from protocol.program.execute import Interpreter, Kernel, Path, Site
from protocol.program.opcodes import Op
from protocol.program.program import Program
from protocol.program.step import State, StepProgram


def one_ulp(bits: int) -> int:
    """The bits of the next representable number away from zero."""
    return bits + 1


def doubled(bits: int) -> int:
    """The bits of twice a normal binary32 number. Its exponent field begins at bit 23."""
    return bits + (1 << 23)


def shifted(bits: int) -> int:
    """The bits of an integer after 2^32 has been added to it. For a product near 2^46, the sum still differs
    from the product after both are rounded to binary32.
    """
    return bits + (1 << 32)


@dataclass(frozen=True)
class Perturbation:
    """A change of one element in the first of an instruction's results. It is applied in the steps `first` to
    `last`, both included, counted from 1.
    """

    path: Path
    number: int
    element: int
    change: Callable[[int], int]
    first: int = 1
    last: int = 2**32


class PerturbingInterpreter(Interpreter):
    """An interpreter that evaluates honestly, then changes the chosen elements. A call that contains a
    perturbed instruction runs its body instead of a kernel.
    """

    def __init__(self, kernels: Mapping[bytes, Kernel], perturbations: Sequence[Perturbation]) -> None:
        super().__init__(kernels)
        self._perturbations = tuple(perturbations)

    def results(self, site: Site, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The instruction's results, changed by the perturbations that name this site."""
        inner = (*site.path, site.number)
        if site.instruction.op is Op.CALL and any(p.path[: len(inner)] == inner for p in self._perturbations):
            results = self.run_frame(site.program.callee(site.number), operands, inner)
        else:
            results = super().results(site, operands)
        for p in self._perturbations:
            if p.path == site.path and p.number == site.number:
                results = (changed(results[0], site, p), *results[1:])
        return results


def changed(value: Tensor, site: Site, perturbation: Perturbation) -> Tensor:
    """A copy of the value with one element's bits changed."""
    type_ = site.instruction.result
    size = type_.dtype.itemsize
    data = bytearray(to_bytes(value, type_.dtype))
    at = perturbation.element * size
    bits = int.from_bytes(data[at : at + size], "little")
    data[at : at + size] = (perturbation.change(bits) % (1 << 8 * size)).to_bytes(size, "little")
    return from_bytes(bytes(data), type_.dtype, type_.shape)


class PerturbedExecutor:
    """A `protocol.execution.replay.Executor` that is honest outside the perturbed steps."""

    def __init__(
        self,
        program: StepProgram,
        fixed: Sequence[Tensor],
        kernels: Mapping[bytes, Kernel],
        perturbations: Sequence[Perturbation],
    ) -> None:
        self._program = program
        self._fixed = tuple(fixed)
        self._kernels = kernels
        self._perturbations = tuple(perturbations)

    def step(self, state: State, number: int, /) -> State:
        """The state after the step."""
        return self._program.step(state, self._fixed, self._interpreter(number, self._kernels))

    def trace(self, state: State, number: int, /) -> Frame:
        """The step with all its values."""
        return self._program.trace(state, self._fixed, self._interpreter(number, self._kernels))

    def _interpreter(self, number: int, kernels: Mapping[bytes, Kernel]) -> Interpreter:
        active = [p for p in self._perturbations if p.first <= number <= p.last]
        return PerturbingInterpreter(kernels, active)


class SkippingExecutor:
    """An executor that returns the old state as the new one in steps `first` to `last`. Its traces are
    honest.
    """

    def __init__(
        self,
        program: StepProgram,
        fixed: Sequence[Tensor],
        kernels: Mapping[bytes, Kernel],
        first: int,
        last: int,
    ) -> None:
        self._program = program
        self._fixed = tuple(fixed)
        self._interpreter = Interpreter(kernels)
        self._skipped = range(first, last + 1)

    def step(self, state: State, number: int, /) -> State:
        """The state after the step."""
        if number in self._skipped:
            return state
        return self._program.step(state, self._fixed, self._interpreter)

    def trace(self, state: State, _number: int, /) -> Frame:
        """The honest trace of the step."""
        return self._program.trace(state, self._fixed)


def producer_of_output(program: Program, output: int) -> tuple[Path, int]:
    """Call path and number of the primitive that computes an output. The primitive may be inside nested calls."""
    path: Path = ()
    while True:
        leaf = program.output(output)[1].operands[0].leaf
        number = program.producer(leaf)
        instruction = program.instructions[number]
        if instruction.op is not Op.CALL:
            return path, number
        path, output, program = (*path, number), leaf - instruction.first, program.callee(number)


def producer_of_operand(program: Program, call: int, operand: int) -> tuple[Path, int]:
    """Call path and number of the primitive that computes operand number `operand` of call number `call`. The
    call and the primitive are in the top frame. Raises LookupError if the operand is computed by another call
    instead of a primitive.
    """
    number = program.producer(program.instructions[call].operands[operand].leaf)
    if program.instructions[number].op is Op.CALL:
        raise LookupError(
            f"expected a primitive behind operand {operand} of call {call}, found call {number}"
        )
    return (), number


def find(program: Program, op: Op, callee: str | None = None, which: int = 0) -> tuple[Path, int]:
    """Call path and number of the `which`-th primitive `op`, counted from 0. If `callee` is given, primitives
    are counted only inside calls of programs with that name. Raises LookupError if there are too few.
    """
    found: list[tuple[Path, int]] = []

    def visit(inner: Program, path: Path, inside: bool) -> None:
        for number, instruction in enumerate(inner.instructions):
            if instruction.op is Op.CALL:
                body = inner.callee(number)
                visit(body, (*path, number), inside or body.name == callee)
            elif instruction.op is op and inside:
                found.append((path, number))

    visit(program, (), callee is None)
    if which >= len(found):
        where = callee or "the program"
        raise LookupError(f"expected more than {which} {op.label} in {where}, found {len(found)}")
    return found[which]
