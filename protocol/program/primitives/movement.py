"""The primitive `constant`, and the primitives that move elements without changing them: `strided`, `concat`,
`pad` and `gather`.

encoding.md section 3, opcodes 0x0002 and 0x0101 to 0x0104; arithmetic.md section 7, "movement" and "literal".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from protocol.numerics import indexing
from protocol.numerics.types import DType, from_bytes
from protocol.program import attributes as attrs
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import (
    Load,
    Primitive,
    Read,
    Types,
    require,
    require_count,
    require_declared,
    require_dtype,
)
from protocol.program.types import TensorType, ravel, unravel


def fill(literal: bytes, type_: TensorType) -> Tensor:
    """A tensor of `type_` whose elements are all `literal`. Only one element is stored, and it is expanded."""
    return from_bytes(literal, type_.dtype, ()).expand(type_.shape)


# constant


def _infer_constant(operands: Types, attributes: bytes, declared: TensorType | None) -> TensorType:
    require_count(operands, 0)
    result = require_declared(declared)
    require_canonical(attrs.decode_literal(attributes, result.dtype.itemsize), result.dtype)
    return result


def _constant(instruction: Instruction, _operands: Sequence[Tensor]) -> Tensor:
    return fill(instruction.attributes, instruction.result)


def _constant_element(instruction: Instruction, _element: int, _load: Load) -> int:
    return int.from_bytes(instruction.attributes, "little")


def _constant_reads(_instruction: Instruction, _element: int, _block: int, _load: Load) -> Iterator[Read]:
    yield from ()


# strided


def _infer_strided(operands: Types, attributes: bytes, declared: TensorType | None) -> TensorType:
    require_count(operands, 1)
    result = require_declared(declared)
    offset, strides = attrs.decode_strided(attributes, result.rank)
    require(result.dtype is operands[0].dtype, f"a result of type {operands[0].dtype.name.lower()}", result)
    spans = [stride * (size - 1) for stride, size in zip(strides, result.shape, strict=True)]
    lowest = offset + sum(span for span in spans if span < 0)
    highest = offset + sum(span for span in spans if span > 0)
    inside = lowest >= 0 and highest < operands[0].elements
    require(inside, f"flat indices from 0 to {operands[0].elements - 1}", f"{lowest} to {highest}")
    return result


COPIED = 2
"""`strided` copies a whole operand only if the operand has at most this many elements for each element of the
result.

Copying an element takes up to 7 ns, and reading a single element by its index up to 23 ns. So the time of a
`strided`, like its cost, is bounded by the size of its result, even if it reads a large operand many times.
"""


def _strided(instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    """The result of a `strided`.

    If the operand is contiguous, the result is a view of it. If it is not, there are two cases. An operand
    that is much larger than the result (`COPIED`) is not copied; only the result's elements are. Any other
    operand is copied whole, and the result is a view of the copy. Axes with a negative stride are flipped in
    the view, and flipping copies the result's elements.
    """
    operand, shape = operands[0], instruction.result.shape
    offset, given = attrs.decode_strided(instruction.attributes, len(shape))
    # An axis of size 1 may have any stride of 64 bits, also one that torch cannot represent or negate. It has no
    # effect. With 1, torch can view the result as another type.
    strides = [1 if size == 1 else stride for size, stride in zip(shape, given, strict=True)]
    if not operand.is_contiguous() and operand.numel() > COPIED * instruction.result.elements:
        return _picked(operand, shape, offset, strides)
    # torch has no negative strides: read those axes from the other end and flip them.
    backward = [axis for axis, stride in enumerate(strides) if stride < 0]
    start = offset + sum(strides[axis] * (shape[axis] - 1) for axis in backward)
    source = operand.contiguous().view(-1)
    view = torch.as_strided(source, shape, [abs(s) for s in strides], source.storage_offset() + start)
    return torch.flip(view, backward) if backward else view


def _picked(operand: Tensor, shape: Sequence[int], offset: int, strides: Sequence[int]) -> Tensor:
    """The elements at flat indices offset + sum of index x stride, without a copy of the operand."""
    places = torch.full((1,) * len(shape), offset, dtype=torch.int64, device=operand.device)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size > 1 and stride:
            along = torch.arange(0, size * stride, stride, dtype=torch.int64, device=operand.device)
            places = places + along.view(-1, *(1,) * (len(shape) - 1 - axis))
    return torch.take(operand, places.expand(shape))


def _strided_source(instruction: Instruction, element: int) -> int:
    offset, strides = attrs.decode_strided(instruction.attributes, instruction.result.rank)
    index = unravel(element, instruction.result.shape)
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))


def _strided_element(instruction: Instruction, element: int, load: Load) -> int:
    return load(0, _strided_source(instruction, element))


def _strided_reads(instruction: Instruction, element: int, _block: int, _load: Load) -> Iterator[Read]:
    yield Read(0, _strided_source(instruction, element))


# concat


def _infer_concat(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    axis = attrs.decode_byte(attributes)
    require(len(operands) >= 1, "at least one operand", "none")
    head = operands[0]
    require(axis < head.rank, f"an axis below {head.rank}", axis)
    for piece in operands:
        same = piece.dtype is head.dtype and piece.rank == head.rank
        sides = (
            same
            and piece.shape[:axis] + piece.shape[axis + 1 :] == head.shape[:axis] + head.shape[axis + 1 :]
        )
        require(sides, f"pieces that equal {head} but on axis {axis}", piece)
    total = sum(piece.shape[axis] for piece in operands)
    return TensorType(head.dtype, (*head.shape[:axis], total, *head.shape[axis + 1 :]))


def _concat(instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    return torch.cat(tuple(operands), dim=attrs.decode_byte(instruction.attributes))


def _concat_source(instruction: Instruction, element: int) -> Read:
    axis = attrs.decode_byte(instruction.attributes)
    index = list(unravel(element, instruction.result.shape))
    piece = 0
    while index[axis] >= instruction.operands[piece].type.shape[axis]:
        index[axis] -= instruction.operands[piece].type.shape[axis]
        piece += 1
    return Read(piece, ravel(index, instruction.operands[piece].type.shape))


def _concat_element(instruction: Instruction, element: int, load: Load) -> int:
    source = _concat_source(instruction, element)
    return load(source.operand, source.first)


def _concat_reads(instruction: Instruction, element: int, _block: int, _load: Load) -> Iterator[Read]:
    yield _concat_source(instruction, element)


# pad


def _infer_pad(operands: Types, attributes: bytes, declared: TensorType | None) -> TensorType:
    require_count(operands, 1)
    operand, result = operands[0], require_declared(declared)
    same = result.dtype is operand.dtype and result.rank == operand.rank
    require(same, f"a result of the type and rank of {operand}", result)
    low, literal = attrs.decode_pad(attributes, operand.rank, operand.dtype.itemsize)
    require_canonical(literal, operand.dtype)
    for before, size, total in zip(low, operand.shape, result.shape, strict=True):
        require(before + size <= total, f"{operand} inside the result at {low}", result)
    return result


def require_canonical(literal: bytes, dtype: DType) -> None:
    """Raise `RuleError` unless a literal is canonical: the only NaN is 0x7fc00000, and a bool is 0 or 1."""
    value = int.from_bytes(literal, "little")
    if dtype is DType.BOOL:
        require(value <= 1, "a literal of 0 or 1", literal.hex())
    if dtype is DType.F32:
        nan = value & 0x7FFFFFFF > 0x7F800000
        require(not nan or value == 0x7FC00000, "a NaN literal of 0000c07f", literal.hex())


def _pad(instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    type_ = instruction.operands[0].type
    low, literal = attrs.decode_pad(instruction.attributes, type_.rank, type_.dtype.itemsize)
    # Filled on the device, because a copy from the host cannot be recorded in a CUDA graph.
    value = from_bytes(literal, type_.dtype, ()).item()
    result = torch.full(instruction.result.shape, value, dtype=type_.dtype.storage, device=operands[0].device)
    result[tuple(slice(at, at + size) for at, size in zip(low, type_.shape, strict=True))] = operands[0]
    return result


def _pad_source(instruction: Instruction, element: int) -> int | None:
    type_ = instruction.operands[0].type
    low, _ = attrs.decode_pad(instruction.attributes, type_.rank, type_.dtype.itemsize)
    index = [i - at for i, at in zip(unravel(element, instruction.result.shape), low, strict=True)]
    inside = all(0 <= i < size for i, size in zip(index, type_.shape, strict=True))
    return ravel(index, type_.shape) if inside else None


def _pad_element(instruction: Instruction, element: int, load: Load) -> int:
    source = _pad_source(instruction, element)
    if source is not None:
        return load(0, source)
    type_ = instruction.operands[0].type
    return int.from_bytes(
        attrs.decode_pad(instruction.attributes, type_.rank, type_.dtype.itemsize)[1], "little"
    )


def _pad_reads(instruction: Instruction, element: int, _block: int, _load: Load) -> Iterator[Read]:
    source = _pad_source(instruction, element)
    if source is not None:
        yield Read(0, source)


# gather


def _infer_gather(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 2)
    table, index = operands
    require(table.rank >= 1, "a table of rank 1 or more", table)
    require_dtype(index, (DType.I32,), "an index")
    return TensorType(table.dtype, index.shape + table.shape[1:])


def _gather(_instruction: Instruction, operands: Sequence[Tensor]) -> Tensor:
    return indexing.gather(operands[0], operands[1])


def _gather_place(instruction: Instruction, element: int) -> tuple[int, int]:
    """Two flat indices for one element of the result. The first says where the index operand holds the number
    of the table's row that is read. The second says which element of that row is read.
    """
    row = instruction.result.elements // instruction.operands[1].type.elements
    return divmod(element, row)


def _gather_source(instruction: Instruction, element: int, load: Load) -> int | None:
    place, column = _gather_place(instruction, element)
    chosen = load(1, place)
    table = instruction.operands[0].type
    if chosen >= table.shape[0]:  # a negative index has its top bit set, above any dimension
        return None
    return chosen * (table.elements // table.shape[0]) + column


def _gather_element(instruction: Instruction, element: int, load: Load) -> int:
    source = _gather_source(instruction, element, load)
    return 0 if source is None else load(0, source)


def _gather_reads(instruction: Instruction, element: int, _block: int, load: Load) -> Iterator[Read]:
    source = _gather_source(instruction, element, load)
    if source is not None:
        yield Read(0, source)
    yield Read(1, _gather_place(instruction, element)[0])


MOVEMENT = (
    Primitive(Op.CONSTANT, _infer_constant, _constant, _constant_element, _constant_reads),
    Primitive(Op.STRIDED, _infer_strided, _strided, _strided_element, _strided_reads),
    Primitive(Op.CONCAT, _infer_concat, _concat, _concat_element, _concat_reads),
    Primitive(Op.PAD, _infer_pad, _pad, _pad_element, _pad_reads),
    Primitive(Op.GATHER, _infer_gather, _gather, _gather_element, _gather_reads),
)
