"""Traced execution: the root of every value of a frame, in order (encoding.md sections 2 to 5).

Traces are made only in disputes. In a trace, a call is one instruction of its frame, and a kernel runs it if
the evaluator has one. `Trace.callee` traces the callee itself by running it again from the call's operands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from torch import Tensor

from protocol.commitments.chunks import tensor_root
from protocol.commitments.hashing import BytesLike
from protocol.commitments.merkle import Tree
from protocol.commitments.roots import trace_tree
from protocol.numerics.types import canonical_buffer
from protocol.program.errors import ValueMismatch
from protocol.program.execute import Evaluator, Interpreter, Path, Site, gather_operands, require_types
from protocol.program.liveness import ancestors, releases, releases_among
from protocol.program.opcodes import Op
from protocol.program.program import Program

KEEP_BYTES = 2 << 30
"""Maximum bytes of values that the trace of a frame keeps.

The trace of a callee keeps at most half as many, so a frame and all frames below it stay under 4 GiB.

The values of a step of an 11M-parameter GPT on 2,048 tokens need about 2 GiB.
"""


class Trace:
    """One run of one program. Make it with `trace`.

    `roots[leaf]` is the tensor root of value `leaf`. When a value has been computed, it is kept in memory if
    it fits into what earlier values have left of `keep` bytes. Inputs are always kept, and do not count.
    Values that are not kept are computed again on demand, from the nearest kept values.
    """

    def __init__(
        self, program: Program, inputs: Sequence[Tensor], evaluator: Evaluator, path: Path, keep: int
    ) -> None:
        require_types(program.inputs, inputs, f"inputs of {program.name}")
        self.program = program
        self.path = path
        self._inputs = tuple(inputs)
        self._evaluator = evaluator
        self._keep = keep
        self._held: dict[int, Tensor] = {}
        self._recalled: dict[int, Tensor] = {}
        self._callee: tuple[int, Trace] | None = None
        self.roots = self._run()

    def _run(self) -> tuple[bytes, ...]:
        roots: list[bytes] = []
        values: dict[int, Tensor] = {}
        room = self._keep
        for number, freed in enumerate(releases(self.program)):
            instruction = self.program.instructions[number]
            for (leaf, value), type_ in zip(self._evaluate(number, values).items(), instruction.results):
                roots.append(tensor_root(canonical_buffer(value, type_.dtype)))
                values[leaf] = value
                size = 0 if instruction.op is Op.INPUT else type_.nbytes
                if size <= room:
                    room -= size
                    self._held[leaf] = value
            for leaf in freed:
                del values[leaf]
        return tuple(roots)

    def _recall(self, leaves: Collection[int]) -> None:
        """Compute some values in one run, and hold them until other values are requested."""
        values = self._held | self._recalled
        numbers = ancestors(self.program, leaves, values)
        wanted = {leaf: values[leaf] for leaf in leaves if leaf in values}
        for number, freed in zip(numbers, releases_among(self.program, numbers), strict=True):
            results = self._evaluate(number, values)
            values.update(results)
            wanted.update((leaf, value) for leaf, value in results.items() if leaf in leaves)
            for leaf in freed:
                del values[leaf]
        self._recalled = wanted

    def _evaluate(self, number: int, values: dict[int, Tensor]) -> dict[int, Tensor]:
        """The results of one instruction by trace leaf; empty for an `output`."""
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

    def tensors(self, leaves: Collection[int]) -> list[Tensor]:
        """The values of `leaves`; those not in memory are computed again in one run. Do not write to them."""
        if any(leaf not in self._held and leaf not in self._recalled for leaf in leaves):
            self._recall(leaves)
        return [self._held[leaf] if leaf in self._held else self._recalled[leaf] for leaf in leaves]

    def tensor(self, leaf: int) -> Tensor:
        """Value `leaf`. Do not write to it."""
        if leaf in self._held or leaf in self._recalled:
            return self.tensors((leaf,))[0]
        # The caller usually needs the producer's operands next, so one run computes all of them.
        instruction = self.program.instructions[self.program.producer(leaf)]
        return self.tensors((leaf, *(operand.leaf for operand in instruction.operands)))[0]

    def value(self, leaf: int) -> BytesLike:
        """Canonical bytes of value `leaf`, without a copy where possible: an input may be a memory-mapped
        file that is larger than the memory.
        """
        return canonical_buffer(self.tensor(leaf), self.program.leaf_type(leaf).dtype)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The frame's outputs."""
        instructions = (self.program.output(k)[1] for k in range(len(self.program.outputs)))
        return tuple(self.tensors([instruction.operands[0].leaf for instruction in instructions]))

    def callee(self, number: int) -> Trace:
        """The trace of the `call` instruction `number`, run from its operands' values in this trace.

        The last requested trace is kept, because a game needs the frames of its path at every move.
        """
        instruction = self.program.instructions[number]
        if instruction.op is not Op.CALL:
            raise ValueMismatch("a call", instruction.op.label, instruction=number)
        if self._callee is None or self._callee[0] != number:
            self._callee = None  # freed first, so that two are never in memory
            operands = self.tensors([operand.leaf for operand in instruction.operands])
            path = (*self.path, number)
            below = Trace(self.program.callee(number), operands, self._evaluator, path, self._keep // 2)
            self._callee = number, below
        return self._callee[1]


def held_bytes(program: Program, keep: int = KEEP_BYTES) -> int:
    """The maximum total size of the values that are kept at the same time, in bytes. The values are those
    kept by a trace of this program and by the traces of the frames below it.

    Recomputed values are not counted.
    """
    known: dict[tuple[bytes, int], int] = {}

    def held(program: Program, keep: int) -> int:
        if (program.id, keep) not in known:
            own = sum(
                type_.nbytes for at in program.instructions if at.op is not Op.INPUT for type_ in at.results
            )
            calls = [number for number, at in enumerate(program.instructions) if at.op is Op.CALL]
            below = max((held(program.callee(number), keep // 2) for number in calls), default=0)
            known[program.id, keep] = min(own, keep) + below
        return known[program.id, keep]

    return held(program, keep)


def trace(
    program: Program,
    inputs: Sequence[Tensor],
    evaluator: Evaluator | None = None,
    *,
    path: Path = (),
    keep: int = KEEP_BYTES,
) -> Trace:
    """Run a checked program and hash every value. The default evaluator is an `Interpreter` without kernels.

    `keep` is the maximum number of bytes of values to keep. Raises `ValueMismatch` if the inputs do not have
    the program's types, or if the results of an instruction do not have its types.
    """
    return Trace(program, inputs, Interpreter() if evaluator is None else evaluator, path, keep)
