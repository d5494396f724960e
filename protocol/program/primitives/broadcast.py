"""Element-wise primitives on operands that broadcast: encoding.md section 3, arithmetic.md sections 2 and 3.

These are opcodes 0x0201 to 0x0502, and `quantise`, `to_fixed` and `round_scaled`. The arithmetic itself is in
`protocol.numerics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from protocol.numerics import elementwise, operations, rows
from protocol.numerics.reference import floats, integers
from protocol.numerics.reference import rows as reference_rows
from protocol.numerics.types import DType
from protocol.program import attributes as attrs
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives.base import (
    Load,
    Primitive,
    Read,
    Types,
    load_value,
    require,
    require_count,
    require_declared,
    require_dtype,
    to_bits,
)
from protocol.program.types import TensorType, broadcast_shape, broadcast_source

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL
ARITHMETIC = (F32, I32, U32, I64)
BITWISE = (I32, U32, I64, BOOL)
SHIFTED = (I32, U32, I64)
INTEGERS = (U8, I32, U32, I64)

Infer = Callable[[Types, bytes, TensorType | None], TensorType]
Evaluate = Callable[[Instruction, Sequence[Tensor]], Tensor]
Values = Callable[[Instruction, Sequence[int]], int]
"""Computes one element of the result from one element of each operand. All elements are integers in the form
that `numerics.reference` uses.
"""


def single(op: Op, infer: Infer, evaluate: Evaluate, values: Values) -> Primitive:
    """A primitive in which each element of the result reads one element of each operand."""

    def element(instruction: Instruction, index: int, load: Load) -> int:
        sources = _sources(instruction, index)
        loaded = [load_value(instruction, k, source, load) for k, source in enumerate(sources)]
        return to_bits(values(instruction, loaded), instruction.result.dtype)

    def reads(instruction: Instruction, index: int, _block: int, _load: Load) -> Iterator[Read]:
        for k, source in enumerate(_sources(instruction, index)):
            yield Read(k, source)

    return Primitive(op, infer, evaluate, element, reads)


def _sources(instruction: Instruction, index: int) -> list[int]:
    shape = instruction.result.shape
    return [broadcast_source(index, shape, operand.shape) for operand in instruction.operand_types]


def _same(count: int, allowed: Sequence[DType], result: DType | None = None) -> Infer:
    """The rule for `count` operands that have the same type, one of `allowed`. The result has the type
    `result`, or the operands' type if `result` is None.
    """

    def infer(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
        attrs.decode_nothing(attributes)
        require_count(operands, count)
        for operand in operands:
            require_dtype(operand, allowed)
            require(operand.dtype is operands[0].dtype, f"operands of one type, as {operands[0]}", operand)
        shape = broadcast_shape(operand.shape for operand in operands)
        return TensorType(operands[0].dtype if result is None else result, shape)

    return infer


def _infer_scale(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 2)
    require_dtype(operands[0], (F32,), "x")
    require_dtype(operands[1], (I32,), "k")
    return TensorType(F32, broadcast_shape(operand.shape for operand in operands))


def _infer_select(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 3)
    require_dtype(operands[0], (BOOL,), "a condition")
    require(
        operands[1].dtype is operands[2].dtype, f"two branches of one type, as {operands[1]}", operands[2]
    )
    return TensorType(operands[1].dtype, broadcast_shape(operand.shape for operand in operands))


def _select_reads(instruction: Instruction, index: int, _block: int, load: Load) -> Iterator[Read]:
    """Read the condition and the chosen branch only, so that a proof opens no more."""
    sources = _sources(instruction, index)
    yield Read(0, sources[0])
    taken = 1 if load(0, sources[0]) else 2
    yield Read(taken, sources[taken])


def _select_element(instruction: Instruction, index: int, load: Load) -> int:
    _, taken = _select_reads(instruction, index, 0, load)
    return load(taken.operand, taken.first)


CASTS = frozenset(
    {(F32, I32), (F32, BOOL)}
    | {(source, F32) for source in (*INTEGERS, BOOL)}
    | {(source, target) for source in (*INTEGERS, BOOL) for target in INTEGERS if source is not target}
    | {(source, BOOL) for source in INTEGERS}
)
"""The conversions that exist (encoding.md section 3, "Casts")."""


def _infer_cast(operands: Types, attributes: bytes, declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 1)
    target = require_declared(declared).dtype
    require(
        (operands[0].dtype, target) in CASTS, f"a cast that exists from {operands[0]}", target.name.lower()
    )
    return TensorType(target, operands[0].shape)


def _infer_bits(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_nothing(attributes)
    require_count(operands, 1)
    require_dtype(operands[0], (F32, U32))
    return TensorType(U32 if operands[0].dtype is F32 else F32, operands[0].shape)


def _infer_fixed(allowed: Sequence[int], result: DType) -> Infer:
    def infer(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
        p = attrs.decode_byte(attributes)
        require(p in allowed, f"p among {', '.join(map(str, allowed))}", p)
        require_count(operands, 2)
        require_dtype(operands[0], (F32,), "x")
        require_dtype(operands[1], (I32,), "e")
        return TensorType(result, broadcast_shape(operand.shape for operand in operands))

    return infer


def _infer_round_scaled(operands: Types, attributes: bytes, _declared: TensorType | None) -> TensorType:
    attrs.decode_byte(attributes)
    require(len(operands) in (2, 3), "2 or 3 operands", len(operands))
    require_dtype(operands[0], (I64,), "s")
    for exponent in operands[1:]:
        require_dtype(exponent, (I32,), "an exponent")
    return TensorType(F32, broadcast_shape(operand.shape for operand in operands))


def _unary(function: Callable[[Tensor], Tensor]) -> Evaluate:
    return lambda _, xs: function(xs[0])


def _binary(function: Callable[[Tensor, Tensor], Tensor]) -> Evaluate:
    return lambda _, xs: function(xs[0], xs[1])


def _typed(function: Callable[[Tensor, Tensor, DType], Tensor]) -> Evaluate:
    """An `evaluate` for a binary function that also needs the operands' type, to tell u32 from i32."""
    return lambda instruction, xs: function(xs[0], xs[1], instruction.operands[0].type.dtype)


def _fixed(function: Callable[[Tensor, Tensor, int], Tensor]) -> Evaluate:
    # `numerics.rows` requires a rank of 1 or more, but operands here may have rank 0.
    return lambda instruction, xs: function(
        torch.atleast_1d(xs[0]), torch.atleast_1d(xs[1]), attrs.decode_byte(instruction.attributes)
    ).reshape(instruction.result.shape)


def _cast(instruction: Instruction, xs: Sequence[Tensor]) -> Tensor:
    return elementwise.cast(xs[0], instruction.operands[0].type.dtype, instruction.result.dtype)


def _bits(instruction: Instruction, xs: Sequence[Tensor]) -> Tensor:
    return (
        elementwise.bits(xs[0]) if instruction.operands[0].type.dtype is F32 else elementwise.from_bits(xs[0])
    )


def _round_scaled(instruction: Instruction, xs: Sequence[Tensor]) -> Tensor:
    exponents = xs[1] if len(xs) == 2 else (xs[1], xs[2])
    return rows.round_scaled(xs[0], exponents, attrs.decode_byte(instruction.attributes))


def _float_or(on_floats: Callable[[int, int], int], on_integers: Callable[[int, int, DType], int]) -> Values:
    def values(instruction: Instruction, v: Sequence[int]) -> int:
        dtype = instruction.operands[0].type.dtype
        return on_floats(v[0], v[1]) if dtype is F32 else on_integers(v[0], v[1], dtype)

    return values


def _on_one(function: Callable[[int], int]) -> Values:
    return lambda _, v: function(v[0])


def _on_pair(function: Callable[[int, int], int]) -> Values:
    return lambda _, v: function(v[0], v[1])


def _on_integers(function: Callable[[int, int, DType], int]) -> Values:
    return lambda instruction, v: function(v[0], v[1], instruction.operands[0].type.dtype)


def _cast_value(instruction: Instruction, v: Sequence[int]) -> int:
    return integers.cast(v[0], instruction.operands[0].type.dtype, instruction.result.dtype)


def _p(instruction: Instruction) -> int:
    return attrs.decode_byte(instruction.attributes)


BROADCAST = (
    single(Op.ADD, _same(2, ARITHMETIC), _binary(operations.add), _float_or(floats.add, integers.add)),
    single(Op.SUB, _same(2, ARITHMETIC), _binary(operations.sub), _float_or(floats.sub, integers.sub)),
    single(Op.MUL, _same(2, ARITHMETIC), _binary(operations.mul), _float_or(floats.mul, integers.mul)),
    single(Op.DIV, _same(2, (F32,)), _binary(operations.div), _on_pair(floats.div)),
    single(Op.MINIMUM, _same(2, (F32,)), _binary(operations.minimum), _on_pair(floats.minimum)),
    single(Op.MAXIMUM, _same(2, (F32,)), _binary(operations.maximum), _on_pair(floats.maximum)),
    single(Op.SQRT, _same(1, (F32,)), _unary(elementwise.sqrt), _on_one(floats.sqrt)),
    single(Op.NEG, _same(1, (F32,)), _unary(elementwise.neg), _on_one(floats.neg)),
    single(Op.ABS, _same(1, (F32,)), _unary(elementwise.abs_), _on_one(floats.abs_)),
    single(Op.FLOOR, _same(1, (F32,)), _unary(elementwise.floor), _on_one(floats.floor)),
    single(Op.RINT, _same(1, (F32,)), _unary(elementwise.rint), _on_one(floats.rint)),
    single(Op.SCALE, _infer_scale, _binary(elementwise.scale), _on_pair(floats.scale)),
    single(
        Op.LT, _same(2, ARITHMETIC, BOOL), _typed(operations.lt), _float_or(floats.lt, lambda x, y, _: x < y)
    ),
    single(
        Op.LE,
        _same(2, ARITHMETIC, BOOL),
        _typed(operations.le),
        _float_or(floats.le, lambda x, y, _: x <= y),
    ),
    single(
        Op.EQ,
        _same(2, (*ARITHMETIC, BOOL), BOOL),
        _binary(elementwise.eq),
        _float_or(floats.eq, lambda x, y, _: x == y),
    ),
    Primitive(
        Op.SELECT,
        _infer_select,
        lambda _, xs: operations.select(xs[0], xs[1], xs[2]),
        _select_element,
        _select_reads,
    ),
    single(Op.AND, _same(2, BITWISE), _binary(elementwise.and_), _on_integers(lambda x, y, _: x & y)),
    single(Op.OR, _same(2, BITWISE), _binary(elementwise.or_), _on_integers(lambda x, y, _: x | y)),
    single(Op.XOR, _same(2, BITWISE), _binary(elementwise.xor), _on_integers(lambda x, y, _: x ^ y)),
    single(Op.SHL, _same(2, SHIFTED), _binary(elementwise.shl), _on_integers(integers.shl)),
    single(Op.SHR, _same(2, SHIFTED), _typed(elementwise.shr), _on_integers(integers.shr)),
    single(Op.MULHI, _same(2, (U32,)), _binary(elementwise.mulhi), _on_pair(integers.mulhi)),
    single(Op.CAST, _infer_cast, _cast, _cast_value),
    single(Op.BITS, _infer_bits, _bits, lambda _, v: floats.canonical(v[0])),
    single(
        Op.QUANTISE,
        _infer_fixed((13, 20, 30), I32),
        _fixed(rows.quantise),
        lambda instruction, v: reference_rows.quantise(v[0], v[1], _p(instruction)),
    ),
    single(
        Op.TO_FIXED,
        _infer_fixed((30,), I64),
        _fixed(rows.to_fixed),
        lambda instruction, v: reference_rows.to_fixed(v[0], v[1], _p(instruction)),
    ),
    single(
        Op.ROUND_SCALED,
        _infer_round_scaled,
        _round_scaled,
        lambda instruction, v: reference_rows.round_scaled(v[0], v[1:], _p(instruction)),
    ),
)
