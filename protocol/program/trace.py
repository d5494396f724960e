"""Traced execution: every value of one frame with its root, in instruction order (encoding.md sections 2 to 5).

Only made in a dispute. A call is one instruction here; `callee(n)` is its own trace, run again from its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from torch import Tensor

from protocol.commitments.chunks import tensor_root
from protocol.commitments.merkle import Tree
from protocol.commitments.roots import trace_tree
from protocol.numerics.types import to_bytes
from protocol.program.errors import ValueMismatch
from protocol.program.execute import Evaluator, Interpreter, Path, Site, gather_operands, require_types
from protocol.program.liveness import ancestors, releases
from protocol.program.opcodes import Op
from protocol.program.program import Program


class Trace:
    """One run of one program. Make it with `trace`.

    `roots[leaf]` is the tensor root of value `leaf`. With `keep=False` only the roots and the inputs stay in memory,
    and a value is computed again when asked for, from the instructions it depends on.
    """

    def __init__(
        self, program: Program, inputs: Sequence[Tensor], evaluator: Evaluator, path: Path, keep: bool
    ) -> None:
        require_types(program.inputs, inputs, f"inputs of {program.name}")
        self.program = program
        self.path = path
        self._inputs = tuple(inputs)
        self._evaluator = evaluator
        self._keep = keep
        self._values: dict[int, Tensor] = {}
        self.roots = self._run()

    def _run(self) -> tuple[bytes, ...]:
        roots: list[bytes] = []
        for number, freed in enumerate(releases(self.program)):
            for leaf, value in self._evaluate(number, self._values).items():
                roots.append(tensor_root(to_bytes(value, self.program.leaf_type(leaf).dtype)))
                self._values[leaf] = value
            if not self._keep:
                for leaf in freed:
                    del self._values[leaf]
        return tuple(roots)

    def _evaluate(self, number: int, values: dict[int, Tensor]) -> dict[int, Tensor]:
        """The results of one instruction by trace leaf; none for an `output`."""
        instruction = self.program.instructions[number]
        if instruction.op is Op.OUTPUT:
            return {}
        operands = gather_operands(instruction, values, self._inputs)
        results = self._evaluator.results(Site(self.path, self.program, number), operands)
        require_types(instruction.results, results, f"results of instruction {number} of {self.program.name}")
        return dict(zip(instruction.leaves, results, strict=True))

    @cached_property
    def tree(self) -> Tree:
        """The trace tree: leaf i is the root of value i."""
        return trace_tree(self.roots)

    def root(self, leaf: int) -> bytes:
        """Tensor root of value `leaf`."""
        return self.roots[leaf]

    def tensor(self, leaf: int) -> Tensor:
        """Value `leaf`; write to none of them."""
        if leaf in self._values:
            return self._values[leaf]
        values: dict[int, Tensor] = {}
        for number in ancestors(self.program, leaf):
            values.update(self._evaluate(number, values))
        return values[leaf]

    def value(self, leaf: int) -> bytes:
        """Canonical bytes of value `leaf`."""
        return to_bytes(self.tensor(leaf), self.program.leaf_type(leaf).dtype)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The frame's outputs."""
        numbers = (self.program.output(k)[1] for k in range(len(self.program.outputs)))
        return tuple(self.tensor(instruction.operands[0].leaf) for instruction in numbers)

    def callee(self, number: int) -> Trace:
        """The trace of the `call` instruction `number`, run from its operands' values in this trace."""
        instruction = self.program.instructions[number]
        if instruction.op is not Op.CALL:
            raise ValueMismatch("a call", instruction.op.label, instruction=number)
        operands = [self.tensor(operand.leaf) for operand in instruction.operands]
        return Trace(self.program.callee(number), operands, self._evaluator, (*self.path, number), self._keep)


def trace(
    program: Program,
    inputs: Sequence[Tensor],
    evaluator: Evaluator | None = None,
    *,
    path: Path = (),
    keep: bool = True,
) -> Trace:
    """Run a checked program and hash every value. The default evaluator is an `Interpreter` without kernels.

    Raises `ValueMismatch` when the inputs are not of the program's types.
    """
    return Trace(program, inputs, Interpreter() if evaluator is None else evaluator, path, keep)
