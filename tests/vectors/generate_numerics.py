"""Writes `numerics.json` from the plain-integer reference; the format is described in this folder's README.

    python -m tests.vectors.generate_numerics [--random N] [--seed S] [--out FILE]

Deterministic: the random operands are Philox words. Torch is not involved, so the file is an oracle for it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path

from protocol.numerics import elementary
from protocol.numerics.reference import floats, integers, philox, rows
from protocol.numerics.reference.operations import IntegerOperations
from protocol.numerics.types import DType
from tests.vectors import numerics_edges as edges
from tests.vectors.numerics_case import BOOL, F32, I32, I64, U8, U32, Case, Value, Words, mapped, vector

DEFAULT_RANDOM = 64
DEFAULT_SEED = 2026


def pairs(dtype: DType, words: Words, count: int) -> tuple[Value, Value]:
    """Operands of a binary operation: all pairs of edge patterns, then random pairs."""
    xs, ys = zip(*product(edges.OF[dtype], edges.OF[dtype]), strict=True)
    return (
        vector(dtype, [*xs, *words.vector(dtype, count)]),
        vector(dtype, [*ys, *words.vector(dtype, count)]),
    )


def f32_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of arithmetic.md section 2 on f32."""
    binary = (
        ("add", 0x201),
        ("sub", 0x202),
        ("mul", 0x203),
        ("div", 0x204),
        ("minimum", 0x205),
        ("maximum", 0x206),
    )
    for name, opcode in binary:
        yield mapped(name, opcode, getattr(floats, name), F32, *pairs(F32, words, count))
    for name, opcode in (("lt", 0x301), ("le", 0x302), ("eq", 0x303)):
        yield mapped(name, opcode, getattr(floats, name), BOOL, *pairs(F32, words, count))
    unary = (("sqrt", 0x207), ("neg", 0x208), ("abs", 0x209), ("floor", 0x20A), ("rint", 0x20B))
    for name, opcode in unary:
        meaning = floats.abs_ if name == "abs" else getattr(floats, name)
        yield mapped(name, opcode, meaning, F32, vector(F32, [*edges.F32, *words.vector(F32, 2 * count)]))
    xs, ks = zip(*product(edges.F32, edges.SHIFTS), strict=True)
    xs += tuple(words.vector(F32, count))
    ks += tuple(x % 600 - 300 for x in words.vector(U32, count))
    yield mapped("scale", 0x20C, floats.scale, F32, vector(F32, xs), vector(I32, ks))


def integer_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of arithmetic.md section 2 on i32, u32, i64 and bool."""
    for dtype in (I32, U32, I64):

        def typed(
            operation: Callable[[int, int, DType], int], dtype: DType = dtype
        ) -> Callable[[int, int], int]:
            return lambda x, y: operation(x, y, dtype)

        for name, opcode in (("add", 0x201), ("sub", 0x202), ("mul", 0x203), ("shl", 0x404), ("shr", 0x405)):
            yield mapped(name, opcode, typed(getattr(integers, name)), dtype, *pairs(dtype, words, count))
        for name, opcode, relation in (
            ("lt", 0x301, int.__lt__),
            ("le", 0x302, int.__le__),
            ("eq", 0x303, int.__eq__),
        ):
            yield mapped(name, opcode, relation, BOOL, *pairs(dtype, words, count))
    for dtype in (I32, U32, I64, BOOL):
        for name, opcode, operation in (
            ("and", 0x401, int.__and__),
            ("or", 0x402, int.__or__),
            ("xor", 0x403, int.__xor__),
        ):
            yield mapped(name, opcode, operation, dtype, *pairs(dtype, words, count // 4))
    yield mapped("mulhi", 0x406, integers.mulhi, U32, *pairs(U32, words, count))


def conversion_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of `select`, `cast` and `bits`."""
    for dtype in DType:
        xs, ys = pairs(dtype, words, count // 4)
        condition = vector(BOOL, words.vector(BOOL, len(xs.elements)))
        canonical = floats.canonical if dtype is F32 else int
        yield mapped("select", 0x304, lambda c, x, y, f=canonical: f(x if c else y), dtype, condition, xs, ys)
    for source, target in edges.CASTS:
        special = edges.ROUNDING_TRAPS if (source, target) == (I64, F32) else ()
        operand = vector(source, [*edges.OF[source], *special, *words.vector(source, count)])
        yield mapped("cast", 0x501, lambda x, s=source, t=target: integers.cast(x, s, t), target, operand)
    for source, target in ((F32, U32), (U32, F32)):
        operand = vector(source, [*edges.F32, *words.vector(source, count)])
        yield mapped("bits", 0x502, floats.canonical, target, operand)


def row_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of arithmetic.md sections 3 to 5 on rows: exponents, maxima, fixed point, rounding."""
    for operand in f32_rows(words, count):
        yield reduced("exponent", 0x601, rows.exponent, I32, operand)
        yield reduced("max", 0x703, rows.max_f32, F32, operand)
        yield reduced("argmax", 0x704, rows.argmax, I32, operand)
    random_x = words.vector(F32, count)
    random_e = [rows.exponent([x, y]) for x, y in zip(random_x, words.vector(F32, count), strict=True)]
    xs, es = zip(*product(edges.F32, edges.EXPONENTS), strict=True)
    x, e = vector(F32, [*xs, *random_x]), vector(I32, [*es, *random_e])
    for name, opcode, out, p in (
        ("quantise", 0x602, I32, 13),
        ("quantise", 0x602, I32, 20),
        ("quantise", 0x602, I32, 30),
        ("to_fixed", 0x603, I64, 30),
    ):
        meaning = getattr(rows, name)
        yield mapped(name, opcode, lambda x, e, m=meaning, p=p: m(x, e, p), out, x, e, attributes=bytes([p]))
    accs, es = zip(*product((*edges.I64, *edges.ROUNDING_TRAPS[::19]), edges.EXPONENTS), strict=True)
    acc = vector(I64, [*accs, *words.vector(I64, 2 * count)])
    first = vector(I32, [*es, *(k % 224 - 95 for k in words.vector(U32, 2 * count))])
    second = vector(I32, [k % 224 - 95 for k in words.vector(U32, len(acc.elements))])
    yield rounded(30, acc, first)
    for bits in (26, 40):
        yield rounded(bits, acc, first, second)


def rounded(bits: int, acc: Value, *exponents: Value) -> Case:
    """A case of `round_scaled` with p = `bits`."""
    return mapped(
        "round_scaled",
        0x604,
        lambda s, *found: rows.round_scaled(s, found, bits),
        F32,
        *(acc, *exponents),
        attributes=bytes([bits]),
    )


def f32_rows(words: Words, count: int) -> Iterator[Value]:
    """Four matrices: short rows of edge patterns, short random rows, one random row that fills one chunk, and
    one that fills two.
    """
    order = words.vector(U32, 8 * 96)
    yield Value(F32, (96, 8), tuple(edges.F32[k % (32 if i < 256 else 27)] for i, k in enumerate(order)))
    yield Value(F32, (count // 8, 8), tuple(words.vector(F32, count // 8 * 8)))
    for length in (256, 512):
        yield Value(F32, (1, length), tuple(x & 0xBFFFFFFF for x in words.vector(F32, length)))


def reduced(
    name: str, opcode: int, meaning: Callable[[Sequence[int]], int], out: DType, operand: Value
) -> Case:
    """A case whose result has the last axis reduced to size 1."""
    elements = tuple(meaning(row) for row in operand.rows())
    return Case(name, opcode, b"", (operand,), Value(out, (*operand.shape[:-1], 1), elements))


def reduction_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of `dot`, integer `sum` and `philox`."""
    for m, n, k in ((4, 4, 8), (2, 3, 256), (1, 2, 512)):
        x = Value(I32, (m, k), tuple(words.vector(I32, m * k)))
        y = Value(I32, (n, k), tuple(words.vector(I32, n * k)))
        small = tuple(Value(I32, v.shape, tuple(e % 16385 - 8192 for e in v.elements)) for v in (x, y))
        for a, b in ((x, y), small):
            result = Value(I64, (m, n), tuple(rows.dot(r, s) for r, s in product(a.rows(), b.rows())))
            yield Case("dot", 0x701, b"", (a, b), result)
    for m, k in ((count // 8, 8), (2, 128), (1, 256)):
        yield reduced("sum", 0x702, rows.sum_i64, I64, Value(I64, (m, k), tuple(words.vector(I64, m * k))))
    for key, step, stream, length in (
        ((0, 0), 0, 0, 7),
        ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, 0xFFFFFFFF, 9),
    ):
        yield philox_case(key, step, stream, length)
    yield philox_case((words.bits(U32), words.bits(U32)), 81, 3, 64)


def partial_sum_cases(words: Words, _: int) -> Iterator[Case]:
    """Cases of `prefix_sum`, and of `scatter_sum` with some indices out of range, on up to three blocks."""
    for m, k in ((6, 8), (2, 128), (1, 256), (1, 384)):
        x = Value(I64, (m, k), tuple(words.vector(I64, m * k)))
        sums = tuple(total for row in x.rows() for total in rows.prefix_sum(row))
        yield Case("prefix_sum", 0x801, b"", (x,), Value(I64, x.shape, sums))
        strays = (-1, 5, 2**31 - 1, -(2**31))
        index = vector(I32, [strays[w >> 8 & 3] if w % 8 == 0 else w % 5 for w in words.vector(U32, k)])
        found = tuple(rows.scatter_sum_i64(index.elements, row, r) for row in x.rows() for r in range(5))
        attributes = (5).to_bytes(4, "big")
        yield Case("scatter_sum", 0x705, attributes, (index, x), Value(I64, (m, 5), found))


def philox_case(key: tuple[int, int], step: int, stream: int, length: int) -> Case:
    """A case with the first `length` Philox words of a key, step and stream."""
    result = vector(U32, [philox.word(key, step, stream, i) for i in range(length)])
    return Case("philox", 0x901, stream.to_bytes(4, "big"), (vector(U32, key), vector(U32, [step])), result)


def movement_cases(words: Words, _: int) -> Iterator[Case]:
    """Cases of `gather` with indices outside the table, and of operands that broadcast."""
    for dtype, width in ((F32, 8), (U8, 3), (I64, 1)):
        table = Value(dtype, (5, width), tuple(words.vector(dtype, 5 * width)))
        canonical = floats.canonical if dtype is F32 else int
        index = Value(I32, (2, 5), (0, 4, 2, 2, 5, -1, 2**31 - 1, -(2**31), 1, 3))
        taken = [row for at in index.elements for row in (table.rows()[at] if 0 <= at < 5 else (0,) * width)]
        yield Case(
            "gather", 0x104, b"", (table, index), Value(dtype, (2, 5, width), tuple(map(canonical, taken)))
        )

    def random(dtype: DType, *shape: int) -> Value:
        return Value(dtype, shape, tuple(words.vector(dtype, prod(shape))))

    yield mapped("add", 0x201, floats.add, F32, random(F32, 3, 4, 8), random(F32, 4, 1))
    yield mapped("mul", 0x203, floats.mul, F32, random(F32, 1), random(F32, 2, 8))
    yield mapped(
        "select",
        0x304,
        lambda c, x, y: x if c else y,
        I32,
        *(random(BOOL, 4, 1), random(I32, 8), random(I32, 4, 8)),
    )
    x = random(F32, 4, 8)
    e = Value(I32, (4, 1), tuple(rows.exponent(row) for row in x.rows()))
    yield mapped("quantise", 0x602, lambda v, k: rows.quantise(v, k, 13), I32, x, e, attributes=bytes([13]))
    f = Value(I32, (1, 6), tuple(k % 60 - 30 for k in words.vector(U32, 6)))
    acc = Value(I64, (4, 6), tuple(k >> 20 for k in words.vector(I64, 24)))
    yield rounded(26, acc, e, f)


def function_cases(words: Words, count: int) -> Iterator[Case]:
    """Cases of composed functions: the elementary ones, and the fused contraction and sum."""
    o = IntegerOperations()
    x = vector(F32, [*edges.F32, *edges.EXP, *words.vector(F32, 2 * count)])
    yield mapped("exp", 0, lambda v: elementary.exp(o, v), F32, x)
    yield mapped("log", 0, lambda v: elementary.log(o, v), F32, x)
    for operand in f32_rows(words, count):
        yield reduced("sum_f32", 0, rows.sum_f32, F32, operand)
        x, y = first_rows(operand, 16), Value(F32, operand.shape, operand.elements[::-1])
        y = first_rows(y, 4)
        for px, py in ((13, 13), (20, 13), (20, 20)):
            found = tuple(rows.contract(r, s, px, py) for r, s in product(x.rows(), y.rows()))
            result = Value(F32, (x.shape[0], y.shape[0]), found)
            yield Case("contract", 0, bytes([px, py]), (x, y), result)
    x = vector(F32, [*edges.F32, *edges.ELEMENTARY, *words.vector(F32, 2 * count)])
    others = (
        elementary.tanh,
        elementary.sigmoid,
        elementary.erf,
        elementary.sin,
        elementary.cos,
        elementary.rsqrt,
    )
    for function in others:
        yield mapped(function.__name__, 0, lambda v, f=function: f(o, v), F32, x)


def tie_cases(_words: Words, _count: int) -> Iterator[Case]:
    """Cases that convert i64 to f32, at and next to halfway points. They use `cast`, and `round_scaled` with
    a normal f32 as the result.
    """
    for length in edges.JAMMED:
        whole = vector(I64, edges.ties(length))
        e = vector(I32, [k % 7 for k in range(len(whole.elements))])
        yield mapped("cast", 0x501, lambda x: integers.cast(x, I64, F32), F32, whole)
        yield rounded(30, whole, e)


def small_cases(_words: Words, _count: int) -> Iterator[Case]:
    """Four kinds of cases: rows whose maximum is below 1, subnormal or zero; sentinels in either operand;
    products that underflow; and operands of `scale` that an implementation might round twice.
    """
    small = Value(F32, (len(edges.SMALL_ROWS), 8), tuple(x for row in edges.SMALL_ROWS for x in row))
    yield reduced("exponent", 0x601, rows.exponent, I32, small)
    yield reduced("max", 0x703, rows.max_f32, F32, small)
    yield reduced("argmax", 0x704, rows.argmax, I32, small)
    yield reduced("sum_f32", 0, rows.sum_f32, F32, small)
    mixed = Value(F32, (len(edges.MIXED_ROWS), 8), tuple(x for row in edges.MIXED_ROWS for x in row))
    for x, y in ((small, mixed), (mixed, small)):
        for px, py in ((13, 13), (20, 20)):
            found = tuple(rows.contract(r, s, px, py) for r, s in product(x.rows(), y.rows()))
            yield Case("contract", 0, bytes([px, py]), (x, y), Value(F32, (x.shape[0], y.shape[0]), found))
    acc = vector(I64, [3 << 40, -(3 << 40), 0, 1, -1])
    first = Value(I32, (4, 1), (32767, 1, 32767, 127))
    second = Value(I32, (4, 1), (1, 32767, 32767, 127))
    for bits in (0, 127, 128, 200, 255):
        yield rounded(bits, acc, first, second)
    xs, ks = zip(*product(edges.TWICE_ROUNDED, range(-150, -110)), strict=True)
    yield mapped("scale", 0x20C, floats.scale, F32, vector(F32, xs), vector(I32, ks))


def bool_cases(_words: Words, _count: int) -> Iterator[Case]:
    """Cases of bools whose bytes are not canonical: loading turns every byte other than 0 into 1."""
    x, y = (vector(BOOL, column) for column in zip(*product((0, 1, 2, 128, 255), repeat=2), strict=True))
    for name, opcode, operation in (
        ("and", 0x401, lambda a, b: bool(a) and bool(b)),
        ("or", 0x402, lambda a, b: bool(a) or bool(b)),
        ("xor", 0x403, lambda a, b: bool(a) is not bool(b)),
        ("eq", 0x303, lambda a, b: bool(a) is bool(b)),
    ):
        yield mapped(name, opcode, operation, BOOL, x, y)
    yield mapped(
        "select", 0x304, lambda c, a, b: bool(a if c else b), BOOL, x, y, vector(BOOL, y.elements[::-1])
    )
    for target in (F32, I64):
        yield mapped("cast", 0x501, lambda a, t=target: integers.cast(int(a != 0), BOOL, t), target, x)


def shape_cases(words: Words, _count: int) -> Iterator[Case]:
    """Cases of rank 0, of reductions of rank 1 and 3, of leading dimensions, and of rows of one element."""

    def random(dtype: DType, *shape: int) -> Value:
        return Value(dtype, shape, tuple(words.vector(dtype, prod(shape))))

    yield mapped("add", 0x201, floats.add, F32, random(F32), random(F32))
    yield mapped("lt", 0x301, int.__lt__, BOOL, random(I64), random(I64, 3))
    yield mapped("cast", 0x501, lambda x: integers.cast(x, F32, I32), I32, random(F32))
    for shape in ((8,), (2, 3, 8), (3, 1)):
        yield reduced("exponent", 0x601, rows.exponent, I32, random(F32, *shape))
        yield reduced("max", 0x703, rows.max_f32, F32, random(F32, *shape))
        yield reduced("argmax", 0x704, rows.argmax, I32, random(F32, *shape))
        yield reduced("sum", 0x702, rows.sum_i64, I64, random(I64, *shape))
        x = random(I64, *shape)
        sums = tuple(total for row in x.rows() for total in rows.prefix_sum(row))
        yield Case("prefix_sum", 0x801, b"", (x,), Value(I64, shape, sums))
    x, y = random(I32, 2, 3, 4), random(I32, 2, 2, 4)
    found = tuple(
        rows.dot(r, s) for at in range(2) for r, s in product(x.rows()[3 * at :][:3], y.rows()[2 * at :][:2])
    )
    yield Case("dot", 0x701, b"", (x, y), Value(I64, (2, 3, 2), found))


def first_rows(value: Value, count: int) -> Value:
    """At most `count` rows of a matrix."""
    kept = min(count, value.shape[0])
    return Value(value.dtype, (kept, value.shape[1]), value.elements[: kept * value.shape[1]])


FAMILIES = (
    f32_cases,
    integer_cases,
    conversion_cases,
    row_cases,
    reduction_cases,
    movement_cases,
    function_cases,
    partial_sum_cases,
    tie_cases,
    small_cases,
    bool_cases,
    shape_cases,
)


def cases(count: int = DEFAULT_RANDOM, seed: int = DEFAULT_SEED) -> list[Case]:
    """Every case; `count` scales the random part."""
    words = Words(seed)
    return [case for family in FAMILIES for case in family(words, count)]


def document(count: int = DEFAULT_RANDOM, seed: int = DEFAULT_SEED) -> str:
    """The file's text. It has two tables, each stored as columns. Every entry is on a separate line, so a
    change shows as a short diff.
    """
    found = cases(count, seed)
    tables = {
        "functions": [case.row() for case in found if not case.opcode],
        "primitives": [case.row() for case in found if case.opcode],
    }
    columns = {
        name: {key: [row[key] for row in table] for key in sorted(table[0])} for name, table in tables.items()
    }
    return json.dumps(columns, indent=0) + "\n"


def main() -> None:
    """Parse the arguments and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=DEFAULT_RANDOM)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("numerics.json"))
    arguments = parser.parse_args()
    text = document(arguments.random, arguments.seed)
    arguments.out.write_text(text)
    found = cases(arguments.random, arguments.seed)
    elements = sum(prod(case.result.shape) for case in found)
    print(f"{arguments.out}: {len(found)} cases, {elements} result elements, {len(text)} bytes")


if __name__ == "__main__":
    main()
