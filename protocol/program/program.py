"""A program: instructions over trace leaves, its bytes, its tree and its id (encoding.md section 4).

This is only data: `check` validates a program, `execute` and `trace` run it. A program's bytes contain the
ids of the programs that it calls, but not these programs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType

from protocol.commitments.merkle import Tree
from protocol.commitments.roots import program_tree
from protocol.program import codec
from protocol.program.attributes import decode_index, decode_program_id
from protocol.program.codec import Reader
from protocol.program.errors import EncodingError
from protocol.program.instruction import MAX_INSTRUCTION_BYTES, Instruction
from protocol.program.opcodes import Op
from protocol.program.types import TensorType

MAX_INSTRUCTIONS = 65_535
NO_CALLEES: Mapping[bytes, Program] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProgramOpening:
    """The preimage of a program id (encoding.md section 6)."""

    root: bytes
    instructions: int
    trace_leaves: int
    signature: bytes

    @property
    def id(self) -> bytes:
        """H(0x02 ‖ instruction root ‖ u32 instructions ‖ u32 trace leaves ‖ signature)."""
        counts = codec.u32(self.instructions) + codec.u32(self.trace_leaves)
        return sha256(b"\x02" + self.root + counts + self.signature).digest()


@dataclass(frozen=True, slots=True)
class InstructionOpening:
    """Instruction `number`: its bytes and its inclusion path in the instruction tree, bottom first."""

    number: int
    data: bytes
    path: tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A program. `inputs` and `outputs` are its signature. `callees` maps the program ids of all calls to the
    called programs.

    `name` is for display only and is not committed. Two programs are equal if their ids are equal.
    """

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    instructions: tuple[Instruction, ...]
    callees: Mapping[bytes, Program] = field(default_factory=lambda: NO_CALLEES, repr=False)
    name: str = "program"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @cached_property
    def encoded(self) -> tuple[bytes, ...]:
        """The bytes of every instruction: the leaves of the instruction tree."""
        return tuple(instruction.encode() for instruction in self.instructions)

    @cached_property
    def instruction_tree(self) -> Tree:
        """The instruction tree; a program has at least one instruction."""
        return program_tree(self.encoded)

    @cached_property
    def trace_leaves(self) -> int:
        """Number of results of all instructions, which is the number of leaves of every trace."""
        return sum(len(instruction.results) for instruction in self.instructions)

    @cached_property
    def signature(self) -> bytes:
        """H(u16 number of inputs ‖ their types ‖ u16 number of outputs ‖ their types)."""
        return sha256(self._signature_bytes()).digest()

    @cached_property
    def opening(self) -> ProgramOpening:
        """The opening of the program id."""
        return ProgramOpening(
            self.instruction_tree.root, len(self.instructions), self.trace_leaves, self.signature
        )

    @cached_property
    def id(self) -> bytes:
        """The program id, 32 bytes. The terms of a task commit to it, and so do `call` instructions."""
        return self.opening.id

    def open_instruction(self, number: int) -> InstructionOpening:
        """Instruction `number` with its path."""
        return InstructionOpening(
            number, self.encoded[number], tuple(self.instruction_tree.inclusion_path(number))
        )

    def callee(self, number: int) -> Program:
        """The program that the `call` instruction `number` runs. Raises `EncodingError` if it is missing."""
        id_ = decode_program_id(self.instructions[number].attributes)
        if id_ not in self.callees:
            raise EncodingError(f"the body of program {id_.hex()} beside {self.name}", "none")
        return self.callees[id_]

    def producer(self, leaf: int) -> int:
        """The number of the instruction whose result is trace leaf `leaf`."""
        if not 0 <= leaf < self.trace_leaves:
            raise IndexError(f"expected a trace leaf from 0 to {self.trace_leaves - 1}, got {leaf}")
        number = bisect_right(self._firsts, leaf) - 1
        while not self.instructions[
            number
        ].results:  # an `output` has no results, so it has the same `first` as the next instruction
            number -= 1
        return number

    @cached_property
    def _firsts(self) -> tuple[int, ...]:
        return tuple(instruction.first for instruction in self.instructions)

    def leaf_type(self, leaf: int) -> TensorType:
        """The type of trace leaf `leaf`."""
        instruction = self.instructions[self.producer(leaf)]
        return instruction.results[leaf - instruction.first]

    def output(self, k: int) -> tuple[int, Instruction]:
        """The `output` instruction for output k of the frame: its number, and the instruction."""
        if k not in self._outputs:
            raise IndexError(f"expected an output from 0 to {len(self.outputs) - 1}, got {k}")
        return self._outputs[k], self.instructions[self._outputs[k]]

    @cached_property
    def _outputs(self) -> dict[int, int]:
        """For each output k, the number of its `output` instruction.

        Cached, because searching for each of 65,535 outputs would take an hour.
        """
        numbers = range(
            len(self.instructions) - 1, -1, -1
        )  # an unchecked program may have two for one k; the first counts
        return {
            decode_index(self.instructions[n].attributes): n
            for n in numbers
            if self.instructions[n].op is Op.OUTPUT
        }

    def renamed(self, name: str) -> Program:
        """The same program with another name; cached results are shared."""
        other = replace(self, name=name)
        other.__dict__.update({**vars(self), "name": name})
        return other

    def calls(self) -> Iterator[int]:
        """Numbers of the `call` instructions, in order."""
        return (n for n, instruction in enumerate(self.instructions) if instruction.op is Op.CALL)

    def closure(self) -> tuple[Program, ...]:
        """This program and all programs that it calls, directly or indirectly: each once, callees before callers."""
        found: dict[bytes, Program] = {}

        def visit(program: Program) -> None:
            if program.id in found:
                return
            for number in program.calls():
                visit(program.callee(number))
            found[program.id] = program

        visit(self)
        return tuple(found.values())

    def encode(self) -> bytes:
        """The program's bytes, without its callees."""
        body = [codec.u32(len(data)) + data for data in self.encoded]
        return self._signature_bytes() + codec.u32(len(body)) + b"".join(body)

    @classmethod
    def decode(
        cls, data: bytes, callees: Mapping[bytes, Program] = NO_CALLEES, name: str = "program"
    ) -> Program:
        """Inverse of `encode`. `callees` holds the programs that the decoded one calls.

        Raises `EncodingError`. Does not `check` the program.
        """
        reader = Reader(data)
        inputs = _read_types(reader)
        outputs = _read_types(reader)
        count = reader.u32()
        if not 1 <= count <= MAX_INSTRUCTIONS:
            raise EncodingError(f"1 to {MAX_INSTRUCTIONS} instructions", str(count))
        instructions = []
        for _ in range(count):
            length = reader.u32()
            if length > MAX_INSTRUCTION_BYTES:
                raise EncodingError(f"an instruction of at most {MAX_INSTRUCTION_BYTES} bytes", str(length))
            instructions.append(Instruction.decode(reader.take(length)))
        reader.end()
        return cls(inputs, outputs, tuple(instructions), callees, name)

    def _signature_bytes(self) -> bytes:
        return _types_bytes(self.inputs) + _types_bytes(self.outputs)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.instructions)} instructions, {len(self.inputs)} inputs>"


def decode_closure(items: Sequence[bytes], names: Mapping[bytes, str] = MappingProxyType({})) -> Program:
    """Decode a closure and return its last program, p. `items` is `[q.encode() for q in p.closure()]`.

    `names` maps program ids to display names. Raises `EncodingError`.
    """
    if not items:
        raise EncodingError("at least one encoded program", "none")
    known: dict[bytes, Program] = {}
    callees = MappingProxyType(known)
    for data in items:
        program = Program.decode(data, callees)
        known[program.id] = program.renamed(names.get(program.id, program.id.hex()[:8]))
    return known[program.id]


def _types_bytes(types: Sequence[TensorType]) -> bytes:
    return codec.u16(len(types)) + b"".join(type_.encode() for type_ in types)


def _read_types(reader: Reader) -> tuple[TensorType, ...]:
    return tuple(TensorType.read(reader) for _ in range(reader.u16()))
