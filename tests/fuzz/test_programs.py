"""Random programs are run, traced, proved and judged, and all of these agree. The judge gets opened chunks.
In every frame, it accepts every element of every primitive's value, and it rejects a changed element. The
arbiter on an EVM judges one right element of each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.commitments import Tree, tensor_root
from protocol.dispute.openings import NO_LEAF, ChunkOpening, Leaf, open_chunk, open_instruction
from protocol.dispute.partial_tree import PartialTree
from protocol.numerics.types import to_bytes
from protocol.program import Instruction, Op, Program, Trace, check, decode_closure, trace
from protocol.program.attributes import decode_index
from protocol.program.execute import Interpreter
from protocol.program.primitives import PRIMITIVES, Reduction, chunks_needed
from tests.chain.evm import Chunk, Evm
from tests.unit.dispute.judge import Judge
from tests.unit.program.random_programs import random_inputs, random_loop, random_program
from tests.unit.program.samples import loader

pytestmark = pytest.mark.chain

SOME, MANY = 5, 120


class Claim:
    """All values of one frame as a solver claims them, true or not, with their trees. Openings are made from
    them.
    """

    def __init__(self, program: Program, values: Sequence[bytes], roots: Sequence[bytes]) -> None:
        self.program = program
        self.values = tuple(values)
        self.roots = tuple(roots)
        self.tree = Tree.from_leaves(self.roots)
        self.judge = Judge(program.opening, self.tree.root)
        self._known = PartialTree(self.tree.root, self.tree.size, self.tree)
        self._chunks: dict[tuple[int, int], ChunkOpening] = {}

    @classmethod
    def of(cls, run: Trace) -> Claim:
        """The true claim."""
        return cls(run.program, [bytes(run.value(leaf)) for leaf in range(len(run.roots))], run.roots)

    def changed(self, leaf: int, data: bytes) -> Claim:
        """The claim with another value at one leaf; nothing else is false."""
        values, roots = list(self.values), list(self.roots)
        values[leaf], roots[leaf] = data, tensor_root(data)
        return Claim(self.program, values, roots)

    def leaf(self, leaf: int) -> Leaf:
        return Leaf(self.roots[leaf], self.tree.inclusion_path(leaf))

    def chunk(self, operand: int, leaf: int, index: int) -> ChunkOpening:
        if (leaf, index) not in self._chunks:
            self._chunks[leaf, index] = open_chunk(operand, index, self.values[leaf])
        return self._chunks[leaf, index]._replace(operand=operand)

    def needed(
        self, n: int, element: int, block: int, anchor: int | None = None
    ) -> tuple[list[Leaf], list[ChunkOpening]]:
        """The openings that the judge needs for one block of an element: roots of operands, and chunks of
        these operands. The path of each root starts at the operand's leaf and ends below the lowest node that
        is above both this leaf and leaf `anchor`. Without an anchor, the path of the first root goes up to
        the trace's root, and the first root's leaf is the anchor for the others.
        """
        instruction = self.program.instructions[n]
        operands = [NO_LEAF] * len(instruction.operands)
        data = [self.values[operand.leaf] for operand in instruction.operands]
        needed = chunks_needed(instruction, element, block, loader(instruction, data))
        for k in dict.fromkeys(k for k, _ in needed):
            leaf = instruction.operands[k].leaf
            if anchor is None:
                operands[k], anchor = self.leaf(leaf), leaf
            else:
                operands[k] = Leaf(self.roots[leaf], self._known.path_beside(leaf, anchor))
        return operands, [self.chunk(k, instruction.operands[k].leaf, index) for k, index in needed]


def made(r: Random) -> Program:
    """A random program, drawn from all primitives, with nested calls and a repeated body."""
    inner = random_program(r, [], moves=12)
    middle = random_program(r, [inner], moves=8)
    return random_program(r, [inner, middle], moves=25, loops=[random_loop(r)])


def frames(run: Trace) -> list[Trace]:
    return [run, *(frame for n in run.program.calls() for frame in frames(run.callee(n)))]


def require_edges(run: Trace) -> None:
    """Require that the operands of each call are its callee's inputs, and that the callee's outputs are the
    call's results.
    """
    for n in run.program.calls():
        call, below = run.program.instructions[n], run.callee(n)
        for instruction in below.program.instructions:
            k = decode_index(instruction.attributes) if instruction.op in (Op.INPUT, Op.OUTPUT) else 0
            if instruction.op is Op.INPUT:
                assert below.root(instruction.first) == run.root(call.operands[k].leaf)
            if instruction.op is Op.OUTPUT:
                assert below.root(instruction.operands[0].leaf) == run.root(call.first + k)


def primitives(claim: Claim) -> Iterator[tuple[int, Instruction]]:
    """Yields the number and the instruction for each instruction that is judged element by element."""
    for n, instruction in enumerate(claim.program.instructions):
        if instruction.op in PRIMITIVES:
            yield n, instruction


def require_right(claim: Claim, r: Random, chain: Evm) -> None:
    """Require that every element of every primitive's value is judged right; the EVM judges one of each
    value.
    """
    for n, instruction in primitives(claim):
        for_evm = r.randrange(instruction.result.elements)
        for element in range(instruction.result.elements):
            claimed, computed = judge_element(claim, n, element, chain if element == for_evm else None)
            assert claimed == computed, f"{instruction.op.label} {n}, element {element}"


def judge_element(claim: Claim, n: int, element: int, chain: Evm | None) -> tuple[int, int]:
    """The claimed and the computed bits; a long row is judged block by block. The arbiter of `chain`, if
    given, must compute the same.
    """
    instruction = claim.program.instructions[n]
    opened, value = open_instruction(claim.program, n), claim.leaf(instruction.first)
    stated = claim.chunk(0, instruction.first, instruction.result.chunk_of(element))
    primitive = PRIMITIVES[instruction.op]
    if isinstance(primitive, Reduction) and primitive.blocks(instruction) > 1:
        words = []
        for block in range(primitive.blocks(instruction)):
            operands, chunks = claim.needed(n, element, block)
            words.append(claim.judge.block(opened, element, block, operands, chunks))
            if chain is not None:
                assert chain.block_result(instruction, element, block, bare(chunks)) == words[-1]
        bits = claim.judge.claimed(opened, element, value, stated)
        return bits, primitive.finish(reduce(primitive.fold, words))
    operands, chunks = claim.needed(n, element, 0, instruction.first)
    bits, computed = claim.judge.element(opened, element, operands, chunks, value, stated)
    if chain is not None:
        assert chain.element(instruction, element, bare(chunks)) == computed
    return bits, computed


def bare(chunks: list[ChunkOpening]) -> list[Chunk]:
    return [(chunk.operand, chunk.number, chunk.data) for chunk in chunks]


def require_wrong(claim: Claim, r: Random) -> None:
    """For each primitive's value, change one element. Require that this element is judged wrong, and that an
    unchanged element next to it is judged right.
    """
    for n, instruction in primitives(claim):
        size, element = instruction.result.dtype.itemsize, r.randrange(instruction.result.elements)
        data = bytearray(claim.values[instruction.first])
        data[element * size + r.randrange(size)] ^= 1 << r.randrange(8)
        false = claim.changed(instruction.first, bytes(data))
        claimed, computed = judge_element(false, n, element, None)
        assert claimed != computed, f"{instruction.op.label} {n}, element {element}"
        if instruction.result.elements > 1:
            claimed, computed = judge_element(false, n, element - 1 if element else 1, None)
            assert claimed == computed


def consistent(seed: int, chain: Evm) -> None:
    """Execute, encode, trace, prove and judge one random program."""
    r = Random(seed)
    program = made(r)
    check(program)
    assert decode_closure([p.encode() for p in program.closure()]) == program
    inputs = random_inputs(program, r)
    run = trace(program, inputs)
    fast = Interpreter().run(program, inputs)
    for x, y, type_ in zip(fast, run.outputs, program.outputs, strict=True):
        assert to_bytes(x, type_.dtype) == to_bytes(y, type_.dtype)
    for frame in frames(run):
        require_edges(frame)
        claim = Claim.of(frame)
        require_right(claim, r, chain)
        require_wrong(claim, r)


def test_the_programs_use_every_primitive_and_nested_calls() -> None:
    closures = [made(Random(seed)).closure() for seed in range(100)]
    used = {instruction.op for each in closures for program in each for instruction in program.instructions}
    assert used == set(Op)
    assert {program.name for each in closures for program in each} >= {"random", "body", "body x 16"}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=SOME)
def test_some_programs_are_judged_consistently(chain: Evm, seed: int) -> None:
    consistent(seed, chain)


@pytest.mark.heavy
@pytest.mark.timeout(1_200)
@given(seed=st.integers(2**33, 2**34))
@settings(max_examples=MANY)
def test_many_programs_are_judged_consistently(chain: Evm, seed: int) -> None:
    consistent(seed, chain)
