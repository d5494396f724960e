"""Random instructions of every primitive: shapes, types, attributes, and how their operands are filled.

Operands of `GENERATORS` have at most a few chunks, so that one call passes all of them to the EVM. Those of
`LARGE` have so many elements that torch code takes the paths that it has for many elements. The list in
tests/unit/program/samples.py is fixed and covers every rule; the shapes here are random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from random import Random

import torch
from torch import Tensor

from protocol.numerics.elementwise import MANY
from protocol.numerics.types import DType, to_bytes
from protocol.program.builder import Builder, Value
from protocol.program.opcodes import Op
from protocol.program.types import TensorType
from tests.unit.program.samples import Sample, fill, sample
from tests.vectors.numerics_edges import CASTS

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL
MOST = 512
"""Approximate limit on the number of elements of a result."""
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 33)
ROW_LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768)
"""Row lengths for f32 and i32: some are shorter than a chunk, the others are one, two or three chunks. For
i64 they are halved.
"""
FAR = (-(2**63), -(2**63) + 1, 2**62, 2**63 - 1)
"""Strides for axes of size 1."""

Shape = tuple[int, ...]
Make = Callable[..., Value]
Generator = Callable[[Random], Sample]
Types = Callable[[Random, Sequence[DType]], list[TensorType]]


def shape(r: Random, most: int = MOST, rank: int = 4) -> Shape:
    """A shape of at most `most` elements and up to `rank` axes."""
    sizes: list[int] = []
    for _ in range(r.randint(0, rank)):
        sizes.append(min(r.choice(SIZES), most // prod(sizes)))
    if r.random() < 0.5 and sizes:
        sizes[0] *= r.randint(1, most // prod(sizes))
    return tuple(sizes)


def partner(r: Random, whole: Shape) -> Shape:
    """A shape that broadcasts to `whole`."""
    if r.random() < 0.4:
        return whole
    return tuple(1 if r.random() < 0.3 else size for size in whole[r.randint(0, len(whole)) :])


def broadcasting(r: Random, dtypes: Sequence[DType]) -> list[TensorType]:
    """Operands of these types that broadcast; one of them, at a random place, has the common shape."""
    whole = shape(r)
    shapes = [whole, *(partner(r, whole) for _ in dtypes[1:])]
    r.shuffle(shapes)
    return [TensorType(dtype, each) for dtype, each in zip(dtypes, shapes, strict=True)]


def many(r: Random, dtypes: Sequence[DType]) -> list[TensorType]:
    """Operands that broadcast to `MANY` elements or more.

    An operand with fewer elements may have more axes than the largest operand, and then the result has as
    many axes.
    """
    whole = r.choice(((MANY,), (1, MANY), (MANY, 1), (128, 129), (1, 1, MANY + 1), (2, 8200), (7, 2400)))
    most = len(whole) + 2
    others = [(1,) if r.random() < 0.4 else partner(r, whole) for _ in dtypes[1:]]
    shapes = [whole, *((*[1] * r.randint(0, most - len(each)), *each) for each in others)]
    r.shuffle(shapes)
    return [TensorType(dtype, each) for dtype, each in zip(dtypes, shapes, strict=True)]


def fill_many(type_: TensorType, how: str, r: Random) -> Tensor:
    """Like `fill`, except that the tensor repeats a pattern of 509 elements, and that a tensor of one element
    is zero half of the time.
    """
    if type_.elements == 1 and r.random() < 0.5:
        return torch.zeros(type_.shape, dtype=type_.dtype.storage)
    pattern = fill(TensorType(type_.dtype, (509,)), how, r)
    return pattern.repeat(-(-type_.elements // 509))[: type_.elements].reshape(type_.shape)


def elementwise(
    method: str,
    choices: Sequence[Sequence[DType]],
    *hows: Sequence[str],
    after: Sequence[int] = (),
    types: Types = broadcasting,
) -> Generator:
    """A generator of instructions. It draws the operands' types at random from `choices`, the possible
    combinations. Each of `hows` lists the possible fills of one operand. The first list is for the second
    operand, the next for the third, and so on. `after` lists the possible values of an attribute. `types`
    chooses the shapes.
    """

    def generate(r: Random) -> Sample:
        dtypes = r.choice(choices)
        fills = ["bits", *(r.choice(how) for how in hows)] if hows else []
        attributes = (r.choice(after),) if after else ()
        return sample(method, types(r, dtypes), lambda b, *xs: getattr(b, method)(*xs, *attributes), fills)

    return generate


def pairs(*dtypes: DType) -> list[tuple[DType, DType]]:
    """Combinations of types for two operands: for each given type, one combination in which both operands
    have this type.
    """
    return [(dtype, dtype) for dtype in dtypes]


def rows(method: str, dtype: DType, *hows: str) -> Generator:
    """A generator of reductions of one operand."""

    def generate(r: Random) -> Sample:
        length = r.choice(ROW_LENGTHS) * 4 // dtype.itemsize or 1
        lead = shape(r, max(1, 2048 // length), 3)
        return sample(
            method, [TensorType(dtype, (*lead, length))], lambda b, x: getattr(b, method)(x), [r.choice(hows)]
        )

    return generate


def constant(r: Random) -> Sample:
    """A constant with a random literal."""
    dtype = r.choice(list(DType))
    literal = to_bytes(fill(TensorType(dtype, ()), "bits", r), dtype)
    return sample("constant", [], lambda b: b.constant(dtype, shape(r), literal))


def strided(r: Random) -> Sample:
    """An affine map somewhere inside the operand; its strides are positive, negative or zero. An axis of size 1
    may have any stride.
    """
    x = TensorType(r.choice(list(DType)), (r.randint(1, MOST),))
    sizes, strides, low, high = [], [], 0, 0
    for size in shape(r):
        stride = r.choice(FAR) if size == 1 and r.random() < 0.5 else r.randint(-9, 9)
        span = stride * (size - 1)
        if high + max(span, 0) - low - min(span, 0) >= x.elements:
            stride = span = 0
        low, high = low + min(span, 0), high + max(span, 0)
        sizes.append(size)
        strides.append(stride)
    offset = r.randint(-low, x.elements - 1 - high)
    return sample("strided", [x], lambda b, v: b.strided(v, sizes, strides, offset))


def concat(r: Random) -> Sample:
    """A concatenation of one to four pieces."""
    whole = shape(r, MOST // 4, 3) or (1,)
    axis, dtype = r.randrange(len(whole)), r.choice(list(DType))
    sizes = [r.randint(1, 1 + whole[axis]) for _ in range(r.randint(1, 4))]
    types = [TensorType(dtype, (*whole[:axis], size, *whole[axis + 1 :])) for size in sizes]
    return sample("concat", types, lambda b, *xs: b.concat(xs, axis))


def pad(r: Random) -> Sample:
    """Padding on any side of any axis."""
    x = TensorType(r.choice(list(DType)), shape(r, MOST // 4, 3))
    low = [r.randint(0, 2) for _ in x.shape]
    whole = [size + at + r.randint(0, 2) for size, at in zip(x.shape, low, strict=True)]
    literal = to_bytes(fill(TensorType(x.dtype, ()), "bits", r), x.dtype)
    return sample("pad", [x], lambda b, v: b.pad(v, whole, low, literal))


def gather(r: Random) -> Sample:
    """Rows gathered from a table, with some indices outside the table."""
    row = shape(r, 16, 2)
    table = TensorType(r.choice(list(DType)), (r.randint(1, 9), *row))
    index = TensorType(I32, shape(r, MOST // prod(row), 2))
    return sample("gather", [table, index], lambda b, x, i: b.gather(x, i), ("bits", "index"))


def cast(r: Random) -> Sample:
    """A cast, for any pair of types that has one."""
    source, target = r.choice(CASTS)
    return sample("cast", [TensorType(source, shape(r))], lambda b, x: b.cast(x, target))


def round_scaled(r: Random) -> Sample:
    """A `round_scaled` with one exponent or two, and with any p."""
    types = broadcasting(r, [I64, I32, I32][: r.randint(2, 3)])
    p = r.choice((0, 13, 26, 30, 40, r.randint(0, 255)))
    fills = ["bits", *(r.choice(("exponent", "exponent", "bits")) for _ in types[1:])]

    def make(b: Builder, *xs: Value) -> Value:
        return b.round_scaled(*xs, p=p)

    return sample("round_scaled", types, make, fills)


def dot(r: Random) -> Sample:
    """A `dot` of up to four pairs of matrices, with up to 64 products of rows in each pair."""
    length = r.choice(ROW_LENGTHS)
    lead = shape(r, 4 if length < 256 else 1, 2)
    m, n = (r.randint(1, 8 if length < 256 else 3) for _ in range(2))
    types = [TensorType(I32, (*lead, each, length)) for each in (m, n)]
    return sample("dot", types, lambda b, x, y: b.dot(x, y))


def scatter_sum(r: Random) -> Sample:
    """A `scatter_sum` whose result has one to nine places. Some indices name one of these places, others lie
    outside.
    """
    length = max(1, r.choice(ROW_LENGTHS) // 2)
    x = TensorType(I64, (*shape(r, max(1, 512 // length), 2), length))
    places = r.randint(1, 9)
    types = [TensorType(I32, (length,)), x]
    return sample("scatter_sum", types, lambda b, i, v: b.scatter_sum(i, v, places), ("index", "bits"))


def philox(r: Random) -> Sample:
    """Random words of any key, step and stream."""
    stream = r.getrandbits(32)
    types = [TensorType(U32, (2,)), TensorType(U32, r.choice(((), (1,), (1, 1))))]
    return sample("philox", types, lambda b, key, step: b.philox(key, step, stream, shape(r)))


NUMBERS = pairs(F32, I32, U32, I64)
FLOATS = pairs(F32)
BITS = pairs(I32, U32, I64, BOOL)
SHIFTED = pairs(I32, U32, I64)
ANY_EXPONENT = ("exponent", "exponent", "bits")


def elementwise_by_op(types: Types) -> dict[Op, Generator]:
    """A generator for each primitive whose operands broadcast."""

    def by_label(ops: Sequence[Op], choices: Sequence[Sequence[DType]]) -> dict[Op, Generator]:
        return {op: elementwise(op.label, choices, types=types) for op in ops}

    return {
        **by_label((Op.ADD, Op.SUB, Op.MUL, Op.LT, Op.LE), NUMBERS),
        **by_label((Op.EQ,), pairs(F32, I32, U32, I64, BOOL)),
        **by_label((Op.DIV, Op.MINIMUM, Op.MAXIMUM), FLOATS),
        **by_label((Op.SQRT, Op.NEG, Op.ABS, Op.FLOOR, Op.RINT), [(F32,)]),
        **by_label((Op.SELECT,), [(BOOL, dtype, dtype) for dtype in (*DType, *[F32] * 6)]),
        Op.AND: elementwise("and_", BITS, types=types),
        Op.OR: elementwise("or_", BITS, types=types),
        **by_label((Op.XOR,), BITS),
        **by_label((Op.SHL, Op.SHR), SHIFTED),
        **by_label((Op.MULHI,), pairs(U32)),
        **by_label((Op.BITS,), [(F32,), (U32,)]),
        Op.SCALE: elementwise("scale", [(F32, I32)], ANY_EXPONENT, types=types),
        Op.QUANTISE: elementwise("quantise", [(F32, I32)], ANY_EXPONENT, after=(13, 20, 30), types=types),
        Op.TO_FIXED: elementwise("to_fixed", [(F32, I32)], ANY_EXPONENT, types=types),
    }


GENERATORS: Mapping[Op, Generator] = {
    **elementwise_by_op(broadcasting),
    Op.CONSTANT: constant,
    Op.STRIDED: strided,
    Op.CONCAT: concat,
    Op.PAD: pad,
    Op.GATHER: gather,
    Op.CAST: cast,
    Op.EXPONENT: rows("exponent", F32, "bits", "finite"),
    Op.ROUND_SCALED: round_scaled,
    Op.DOT: dot,
    Op.SUM: rows("sum", I64, "bits"),
    Op.MAX: rows("max", F32, "bits", "finite", "ties"),
    Op.ARGMAX: rows("argmax", F32, "bits", "finite", "ties"),
    Op.SCATTER_SUM: scatter_sum,
    Op.PREFIX_SUM: rows("prefix_sum", I64, "bits"),
    Op.PHILOX: philox,
}
LARGE: Mapping[Op, Generator] = elementwise_by_op(many)
"""Generators of instructions whose operands broadcast to `MANY` elements or more. `fill_many` fills these
operands.
"""
