"""Answers the questions that the search for attention asks about a program's frame.

Function names come from kernels that were found by program id, never from names in a bundle.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from protocol.errors import InternalError
from protocol.numerics.kernels.attention import Change
from protocol.numerics.kernels.attention_shape_classes import Kind
from protocol.numerics.types import DType
from protocol.program.attributes import decode_strided
from protocol.program.execute import Kernel
from protocol.program.instruction import Instruction
from protocol.program.library.contractions import CONTRACTED
from protocol.program.library.function import LibraryKernel
from protocol.program.opcodes import Op
from protocol.program.program import Program
from protocol.program.types import Shape, contiguous_strides

Pair = tuple[int, int]
Values = Mapping[int, Tensor]


class NoMatch(InternalError):
    """These instructions do not form an attention that a fused function can run."""


@dataclass(frozen=True)
class Factor:
    """An operand of a product: its leaf, its bits, and whether its second-to-last axis is the contracted one
    (`turned`).
    """

    leaf: int
    turned: bool
    bits: int

    def of(self, values: Values) -> Tensor:
        """The matrix with its contracted axis last."""
        return values[self.leaf].mT if self.turned else values[self.leaf]


@dataclass(frozen=True)
class Product:
    """A call of a matrix product: its instruction number, both factors, and the leaf of the result."""

    number: int
    left: Factor
    right: Factor
    result: int

    @property
    def bits(self) -> Pair:
        """Bits of the left and the right factor."""
        return self.left.bits, self.right.bits


@dataclass(frozen=True)
class Link:
    """One instruction that changes scores: the leaf that it reads, and the change.

    `kind` is None for a reshape.
    """

    number: int
    source: int
    kind: Kind | None
    value: float = 0.0
    table: int | None = None
    shape: Shape = ()

    def change(self, values: Values) -> Change:
        """The change that this instruction makes. If the link has a `table`, which is the number of a leaf,
        the change contains that leaf's value from `values`, expanded to `shape`.
        """
        assert self.kind is not None
        table = None if self.table is None else values[self.table].expand(self.shape)
        return Change(self.kind, self.value, table)


class Frame:
    """A program, and the instructions that read each leaf."""

    def __init__(self, program: Program, kernels: Mapping[bytes, Kernel]) -> None:
        self.program = program
        self._kernels = kernels
        self._readers: dict[int, list[int]] = defaultdict(list)
        for number, instruction in enumerate(program.instructions):
            for leaf in {operand.leaf for operand in instruction.operands}:
                self._readers[leaf].append(number)

    def kernel(self, number: int) -> LibraryKernel | None:
        """The kernel of the library function that an instruction calls. None if it calls none."""
        if self.program.instructions[number].op is not Op.CALL:
            return None
        kernel = self._kernels.get(self.program.callee(number).id)
        return kernel if isinstance(kernel, LibraryKernel) else None

    def name(self, number: int) -> str | None:
        """The name of the library function that an instruction calls. None if it calls none."""
        kernel = self.kernel(number)
        return None if kernel is None else kernel.function.name

    def readers(self, *leaves: int) -> set[int]:
        """Numbers of the instructions that read one of these leaves."""
        return {number for leaf in leaves for number in self._readers[leaf]}

    def constant(self, leaf: int) -> float | None:
        """The value of a leaf that is a rank-0 f32 constant. None for any other leaf."""
        instruction = self.program.instructions[self.program.producer(leaf)]
        if instruction.op is not Op.CONSTANT or instruction.result.dtype is not DType.F32:
            return None
        value: float = struct.unpack("<f", instruction.attributes)[0]
        return None if instruction.result.shape else value

    def product(self, number: int) -> Product:
        """The matrix product that an instruction calls.

        Raises `NoMatch` if the instruction calls none, if the product has a bias, or if the operands' leading
        axes differ.
        """
        kernel, instruction = self.kernel(number), self.program.instructions[number]
        if kernel is None or kernel.function.name not in CONTRACTED or len(instruction.operands) != 2:
            raise NoMatch
        x, y = instruction.operands
        if x.type.shape[:-2] != y.type.shape[:-2]:
            raise NoMatch
        bits = (int(kernel.attributes.get("px", 13)), int(kernel.attributes.get("py", 13)))
        axes = CONTRACTED[kernel.function.name]
        left, right = (Factor(o.leaf, axis == -2, p) for o, axis, p in zip((x, y), axes, bits))
        return Product(number, left, right, instruction.first)

    def terms(self, product: Product) -> int:
        """The length of the axis that a product contracts."""
        factor = product.left
        return self.program.leaf_type(factor.leaf).shape[-2 if factor.turned else -1]

    def width(self, factor: Factor) -> int:
        """The length of a factor's axis that is not contracted."""
        return self.program.leaf_type(factor.leaf).shape[-1 if factor.turned else -2]

    def link(self, number: int) -> Link:
        """The reshape or the element-wise change of scores that an instruction makes.

        Raises `NoMatch` for any other instruction.
        """
        instruction = self.program.instructions[number]
        if instruction.op is Op.CALL or len(instruction.results) != 1:
            raise NoMatch
        link = self._link(number, instruction, [operand.leaf for operand in instruction.operands])
        before, after = self.program.leaf_type(link.source), instruction.result
        if before.elements != after.elements or before.shape[-2:] != after.shape[-2:]:
            raise NoMatch
        return link

    def _link(self, number: int, instruction: Instruction, leaves: list[int]) -> Link:
        shape, constants = instruction.result.shape, [self.constant(leaf) for leaf in leaves]
        if instruction.op is Op.STRIDED:
            offset, strides = decode_strided(instruction.attributes, len(shape))
            if offset == 0 and strides == contiguous_strides(shape):
                return Link(number, leaves[0], None)
        elif instruction.op is Op.MUL and constants.count(None) == 1:
            k = constants.index(None)
            factor = constants[1 - k]
            assert factor is not None
            return Link(number, leaves[k], Kind.TIMES, factor)
        elif instruction.op is Op.DIV and constants[1] is not None:
            return Link(number, leaves[0], Kind.OVER, constants[1])
        elif instruction.op is Op.SELECT and constants[1] is not None:
            return Link(number, leaves[2], Kind.FILL_TRUE, constants[1], leaves[0], shape)
        elif instruction.op is Op.SELECT and constants[2] is not None:
            return Link(number, leaves[1], Kind.FILL_FALSE, constants[2], leaves[0], shape)
        elif instruction.op is Op.ADD and instruction.result.dtype is DType.F32:
            k = 0 if instruction.operands[0].type.shape == shape else 1
            return Link(number, leaves[k], Kind.PLUS, 0.0, leaves[1 - k], shape)
        raise NoMatch
