"""Every primitive refuses operands, results and attributes that encoding.md section 3 does not allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from protocol.numerics.types import DType
from protocol.program import Builder, Program, RuleError, TensorType, Value, check

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL
ROW = TensorType(F32, (2, 4))


@dataclass
class Scene:
    """A builder with a value of each kind that the rules distinguish."""

    b: Builder = field(default_factory=Builder)

    def __post_init__(self) -> None:
        self.f: Value = self.b.input(ROW)
        self.i: Value = self.b.input(TensorType(I32, (2, 4)))
        self.places: Value = self.b.input(TensorType(I32, (4,)))
        self.wide: Value = self.b.input(TensorType(I64, (2, 4)))
        self.c: Value = self.b.input(TensorType(BOOL, (2, 4)))
        self.key: Value = self.b.constant(U32, (2,), 1)
        self.word: Value = self.b.constant(U32, (), 1)


def other() -> Program:
    b = Builder("other")
    b.output(b.neg(b.input(ROW)))
    return b.build()


RULES: dict[str, Callable[[Scene], object]] = {
    "mixed types": lambda s: s.b.add(s.f, s.i),
    "add on bool": lambda s: s.b.add(s.c, s.c),
    "div on i32": lambda s: s.b.div(s.i, s.i),
    "lt on bool": lambda s: s.b.lt(s.c, s.c),
    "and on f32": lambda s: s.b.and_(s.f, s.f),
    "shl on bool": lambda s: s.b.shl(s.c, s.c),
    "mulhi on i32": lambda s: s.b.mulhi(s.i, s.i),
    "select on i32": lambda s: s.b.select(s.i, s.f, s.f),
    "select of two types": lambda s: s.b.select(s.c, s.f, s.i),
    "scale by f32": lambda s: s.b.scale(s.f, s.f),
    "cast f32 to i64": lambda s: s.b.cast(s.f, DType.I64),
    "cast f32 to u8": lambda s: s.b.cast(s.f, DType.U8),
    "bits of i32": lambda s: s.b.bits(s.i),
    "gather by f32": lambda s: s.b.gather(s.f, s.f),
    "gather from a scalar": lambda s: s.b.gather(s.b.f32(0), s.i),
    "exponent of i32": lambda s: s.b.exponent(s.i),
    "exponent of a scalar": lambda s: s.b.exponent(s.b.f32(0)),
    "quantise by f32": lambda s: s.b.quantise(s.f, s.f, 13),
    "to_fixed of 20": lambda s: s.b.to_fixed(s.f, s.i, 20),
    "round_scaled of i32": lambda s: s.b.round_scaled(s.i, s.i, p=1),
    "round_scaled alone": lambda s: s.b.round_scaled(s.b.cast(s.i, DType.I64), p=1),
    "dot of f32": lambda s: s.b.dot(s.f, s.f),
    "dot of vectors": lambda s: s.b.dot(s.b.slice(s.b.reshape(s.i, (8,)), 0, 0, 4), s.b.reshape(s.i, (8,))),
    "dot of other batches": lambda s: s.b.dot(s.b.reshape(s.i, (2, 1, 4)), s.b.reshape(s.i, (1, 2, 4))),
    "dot of other rows": lambda s: s.b.dot(s.i, s.b.reshape(s.i, (4, 2))),
    "sum of i32": lambda s: s.b.sum(s.i),
    "prefix_sum of i32": lambda s: s.b.prefix_sum(s.i),
    "scatter_sum of i32": lambda s: s.b.scatter_sum(s.places, s.i, 3),
    "scatter_sum by i64": lambda s: s.b.scatter_sum(s.b.cast(s.places, I64), s.wide, 3),
    "scatter_sum by another row": lambda s: s.b.scatter_sum(s.b.reshape(s.i, (8,)), s.wide, 3),
    "scatter_sum by rows": lambda s: s.b.scatter_sum(s.i, s.wide, 3),
    "scatter_sum to no rows": lambda s: s.b.scatter_sum(s.places, s.wide, 0),
    "max of i32": lambda s: s.b.max(s.i),
    "philox with a long key": lambda s: s.b.philox(s.b.constant(DType.U32, (3,), 0), s.word, 0, (1,)),
    "philox with two steps": lambda s: s.b.philox(s.key, s.b.constant(DType.U32, (2,), 0), 0, (1,)),
    "philox with a signed key": lambda s: s.b.philox(s.b.constant(I32, (2,), 0), s.word, 0, (1,)),
    "concat of two types": lambda s: s.b.concat([s.f, s.i], 0),
    "concat of other sides": lambda s: s.b.concat([s.f, s.b.reshape(s.f, (4, 2))], 0),
    "concat of nothing": lambda s: s.b.concat([], 0),
    "reshape to more": lambda s: s.b.reshape(s.f, (9,)),
    "expand of a size": lambda s: s.b.expand(s.f, (2, 8)),
    "slice outside": lambda s: s.b.slice(s.f, 1, 2, 5),
    "permute twice the same axis": lambda s: s.b.permute(s.f, (0, 0)),
    "a literal too large": lambda s: s.b.constant(DType.U8, (), 256),
    "a literal that is not a number": lambda s: s.b.constant(I64, (), float("nan")),
    "a float too large": lambda s: s.b.constant(F32, (), 1e39),
    "a literal of a wrong length": lambda s: s.b.constant(F32, (), b"\x00"),
    "a bool literal of 2": lambda s: s.b.constant(BOOL, (), b"\x02"),
    "call with other operands": lambda s: s.b.call(other(), s.i),
}


@pytest.mark.parametrize("why", RULES)
def test_rules_refuse(why: str) -> None:
    with pytest.raises(RuleError):
        RULES[why](Scene())


def test_operands_of_another_builder_are_refused() -> None:
    x = Builder("one").input(ROW)
    with pytest.raises(RuleError, match="values of two"):
        Builder("two").neg(x)


def test_rows_that_no_chunk_aligns_are_refused() -> None:
    for length in (3, 5, 255, 257, 384, 1000):
        b = Builder()
        x = b.input(TensorType(F32, (2, length)))
        with pytest.raises(RuleError, match="rows whose bytes divide"):
            b.exponent(x)
    for length in (1, 2, 4, 128, 256, 512, 768):
        b = Builder()
        b.output(b.exponent(b.input(TensorType(F32, (2, length)))))
        check(b.build())


def test_a_scatter_sum_aligns_its_values_not_its_index() -> None:
    b = Builder()
    for length in (1, 64, 128, 384):  # an index of 384 is a chunk and a half
        b.output(b.scatter_sum(b.constant(I32, (length,), 0), b.constant(I64, (2, length), 1), 3))
    check(b.build())
    with pytest.raises(RuleError, match="rows whose bytes divide"):
        b.scatter_sum(b.constant(I32, (192,), 0), b.constant(I64, (192,), 1), 3)
