"""Building blocks of `generate_numerics`: values, cases, a seeded stream of words, and broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from protocol.numerics.reference import integers, philox
from protocol.numerics.types import DType

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL


@dataclass(frozen=True)
class Value:
    """A tensor: its type, its shape and its elements. The elements are ints, as in the reference."""

    dtype: DType
    shape: tuple[int, ...]
    elements: tuple[int, ...]

    def data(self) -> bytes:
        """Canonical little-endian bytes."""
        mask = (1 << self.dtype.width) - 1
        return b"".join((int(x) & mask).to_bytes(self.dtype.itemsize, "little") for x in self.elements)

    def rows(self) -> list[tuple[int, ...]]:
        """The tensor's rows. Each row has the elements along the last axis."""
        length = self.shape[-1]
        return [self.elements[i : i + length] for i in range(0, len(self.elements), length)]

    def type(self) -> bytes:
        """Type and shape as encoding.md section 1 writes them."""
        sizes = b"".join(size.to_bytes(4, "big") for size in self.shape)
        return bytes([self.dtype, len(self.shape)]) + sizes


@dataclass(frozen=True)
class Case:
    """One application of a primitive (opcode of encoding.md) or, with opcode 0, of a composed function."""

    name: str
    opcode: int
    attributes: bytes
    operands: tuple[Value, ...]
    result: Value

    def instruction(self) -> bytes:
        """The primitive as encoding.md section 3 writes it, operands in trace leaves 0, 1, ..."""
        operands = b"".join(leaf.to_bytes(4, "big") + x.type() for leaf, x in enumerate(self.operands))
        head = self.opcode.to_bytes(2, "big") + len(self.operands).to_bytes(4, "big")
        return head + bytes([len(self.operands)]) + operands + b"\x01" + self.result.type() + self.attributes

    def row(self) -> dict[str, str]:
        """The case's row in the file's table."""
        values: dict[str, bytes] = {"attributes": self.attributes, "out": self.result.data()}
        values["out_type"] = self.result.type()
        values["instruction"] = self.instruction() if self.opcode else b""
        for index, column in enumerate("xyz"):
            present = index < len(self.operands)
            values[column] = self.operands[index].data() if present else b""
            values[f"{column}_type"] = self.operands[index].type() if present else b""
        return {"name": self.name, **{key: "0x" + value.hex() for key, value in values.items()}}


class Words:
    """A seeded stream of random bits."""

    def __init__(self, seed: int) -> None:
        self._seed, self._next = seed, 0

    def bits(self, dtype: DType) -> int:
        """Random bits of an element, in the form in which the reference holds it. They are uniform, except
        that half of the f32 elements have magnitudes from 2^-8 to 2^8.
        """
        low, high, third = (philox.word((self._seed, 0), 0, 0, self._next + i) for i in range(3))
        self._next += 3
        if dtype is F32:
            return low if third & 1 else (low & 0x807FFFFF) | (119 + high % 16) << 23
        return integers.wrap(low | high << 32, dtype) if dtype is not BOOL else low & 1

    def vector(self, dtype: DType, count: int) -> list[int]:
        """A list of `count` elements, each made by `bits`."""
        return [self.bits(dtype) for _ in range(count)]


def vector(dtype: DType, elements: Sequence[int]) -> Value:
    """A value of rank 1."""
    return Value(dtype, (len(elements),), tuple(elements))


def mapped(
    name: str, opcode: int, meaning: Callable[..., int], out: DType, *operands: Value, attributes: bytes = b""
) -> Case:
    """A case whose result applies `meaning` element by element to operands that broadcast."""
    shape = broadcast([operand.shape for operand in operands])
    columns = [[operand.elements[at] for at in flat_indices(operand.shape, shape)] for operand in operands]
    elements = tuple(int(meaning(*xs)) for xs in zip(*columns, strict=True))
    return Case(name, opcode, attributes, operands, Value(out, shape, elements))


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, aligned at the right (encoding.md section 3, "Broadcasting")."""
    rank = max(map(len, shapes))
    return tuple(max(axis) for axis in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True))


def flat_indices(shape: tuple[int, ...], out: tuple[int, ...]) -> list[int]:
    """The flat indices of the elements that are read when a tensor of shape `shape` is broadcast to shape
    `out`. There is one index for each element of the result, in C order. It says from which element of the
    tensor the result's element is copied.
    """
    indices = [0]
    for axis, size in enumerate(out):
        own = axis - (len(out) - len(shape))
        step = prod(shape[own + 1 :]) if own >= 0 and shape[own] > 1 else 0
        indices = [at + step * i for at in indices for i in range(size)]
    return indices
