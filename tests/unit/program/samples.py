"""One or more instructions of every primitive, with difficult operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from protocol.numerics.types import DType, from_bytes
from protocol.program.builder import Builder, Value
from protocol.program.instruction import Instruction
from protocol.program.primitives.base import Load
from protocol.program.types import TensorType
from tests.vectors.numerics_edges import OF as EDGES

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL
INDICES: tuple[int, ...] = (*range(-2, 9), 2**31 - 1, -(2**31))
EXPONENTS: tuple[int, ...] = (0, 1, -1, 13, 30, -95, -96, 128, 32767, -32767, 400, -400, 2**31 - 1, -(2**31))


@dataclass(frozen=True)
class Sample:
    """An instruction over inputs. `fills` has the kind of values for each operand."""

    name: str
    instruction: Instruction
    fills: tuple[str, ...]

    def operands(self, seed: int) -> list[Tensor]:
        """Random operands, determined by the seed."""
        draw = random.Random(f"{self.name} {seed}")
        return [fill(type_, how, draw) for type_, how in zip(self.instruction.operand_types, self.fills)]


def fill(type_: TensorType, how: str, draw: random.Random) -> Tensor:
    """A tensor with random values of the kind `how`.

    `bits`: edge cases and random bits. `finite`: no NaN and no infinity. `ties`: 0 and 1 with both signs.
    `index`: -2 … 8, and the limits of i32. `exponent`: -150 … 150, and edge cases.
    """
    values = [_one(type_.dtype, how, draw) for _ in range(type_.elements)]
    data = b"".join((v % (1 << type_.dtype.width)).to_bytes(type_.dtype.itemsize, "little") for v in values)
    return from_bytes(data, type_.dtype, type_.shape)


def _one(dtype: DType, how: str, draw: random.Random) -> int:
    if how == "exponent":
        return draw.choice(EXPONENTS) if draw.random() < 0.5 else draw.randint(-150, 150)
    if how == "index":
        return draw.choice(INDICES)
    if how == "ties":
        return draw.choice((0x00000000, 0x80000000, 0x3F800000, 0xBF800000))
    if how == "finite":
        return draw.getrandbits(1) << 31 | draw.randrange(0x7F800000)
    if dtype is BOOL:
        return draw.getrandbits(1)
    edges: Sequence[int] = EDGES[dtype]
    return draw.choice(edges) if draw.random() < 0.4 else draw.getrandbits(dtype.width)


def loader(instruction: Instruction, data: Sequence[bytes]) -> Load:
    """A function that loads the bits of one element from the canonical bytes of an operand."""
    sizes = [operand.type.dtype.itemsize for operand in instruction.operands]

    def load(operand: int, element: int) -> int:
        size = sizes[operand]
        assert 0 <= element < len(data[operand]) // size
        return int.from_bytes(data[operand][element * size : (element + 1) * size], "little")

    return load


def sample(
    name: str, types: Sequence[TensorType], make: Callable[..., Value], fills: Sequence[str] = ()
) -> Sample:
    """Record `make(builder, *inputs)` and sample its last instruction."""
    b = Builder(name)
    make(b, *[b.input(type_) for type_ in types])
    given = tuple(fills) or ("bits",) * len(types)
    return Sample(name, b.build().instructions[-1], given)


def _call(method: str, *after: Any) -> Callable[..., Value]:
    return lambda b, *xs: getattr(b, method)(*xs, *after)


def t(dtype: DType, *shape: int) -> TensorType:
    """A tensor type."""
    return TensorType(dtype, shape)


def _movement() -> list[Sample]:
    x = t(F32, 3, 4, 5)
    return [
        sample("constant", [], lambda b: b.constant(F32, (3, 2), 1.5)),
        sample("constant nan", [], lambda b: b.constant(F32, (), float("nan"))),
        sample("constant i64", [], lambda b: b.constant(I64, (2,), -(2**63))),
        sample("constant u32", [], lambda b: b.constant(U32, (2,), 2**32 - 1)),
        sample("permute", [x], lambda b, v: b.permute(v, (2, 0, 1))),
        sample("flip", [x], lambda b, v: b.flip(v, 1)),
        sample("flip all", [t(I64, 130, 2)], lambda b, v: b.strided(v, (130, 2), (-2, -1), 259)),
        sample("slice", [t(BOOL, 4, 1500)], lambda b, v: b.slice(v, 1, 3, 1400, 7)),
        sample("expand", [t(U8, 3, 1)], lambda b, v: b.expand(v, (2, 3, 4))),
        sample("unfold", [t(I32, 9)], lambda b, v: b.strided(v, (5, 5), (1, 1))),
        sample(
            "flip eight",
            [t(F32, 256)],
            lambda b, v: b.strided(v, (2,) * 8, [-(1 << k) for k in range(8)], 255),
        ),
        sample("to scalar", [t(U32, 7)], lambda b, v: b.strided(v, (), (), 3)),
        sample("least stride", [t(F32, 8)], lambda b, v: b.strided(v, (1, 4), (-(2**63), -2), 7)),
        sample("largest stride", [t(I64, 8)], lambda b, v: b.strided(v, (4, 1), (2, 2**63 - 1))),
        sample("concat", [x, t(F32, 3, 1, 5), x], lambda b, *v: b.concat(v, 1)),
        sample("concat one", [t(U8, 4)], lambda b, *v: b.concat(v, 0)),
        sample("pad", [x], lambda b, v: b.pad(v, (4, 6, 5), (1, 2, 0), -0.0)),
        sample("pad i32", [t(I32, 5)], lambda b, v: b.pad_rows(v, -7)),
        sample("pad i64", [t(I64, 3)], lambda b, v: b.pad(v, (5,), (2,), -(2**63))),
        sample("pad u32", [t(U32, 3)], lambda b, v: b.pad(v, (5,), (0,), 2**32 - 1)),
        sample("pad nan", [t(F32, 3)], lambda b, v: b.pad(v, (5,), (1,), float("nan"))),
        sample("pad scalar", [t(BOOL)], lambda b, v: b.pad(v, (), (), True)),
        sample("gather", [t(F32, 7, 3), t(I32, 4, 5)], _call("gather"), ("bits", "index")),
        sample("gather wide", [t(U8, 6, 2000), t(I32)], _call("gather"), ("bits", "index")),
        sample("gather vector", [t(I64, 5), t(I32, 60)], _call("gather"), ("bits", "index")),
        sample("gather bool", [t(BOOL, 7, 2, 2), t(I32, 9)], _call("gather"), ("bits", "index")),
    ]


def _elements() -> list[Sample]:
    found = []
    for method in ("add", "sub", "mul"):
        for dtype in (F32, I32, U32, I64):
            found.append(sample(f"{method} {dtype.name}", [t(dtype, 40, 8)] * 2, _call(method)))
    for method in ("div", "minimum", "maximum"):
        found.append(sample(method, [t(F32, 50, 9), t(F32, 50, 1)], _call(method)))
    for method in ("sqrt", "neg", "abs", "floor", "rint"):
        found.append(sample(method, [t(F32, 300)], _call(method)))
    found.append(sample("scale", [t(F32, 20, 1), t(I32, 1, 20)], _call("scale"), ("bits", "exponent")))
    found.append(sample("scale any", [t(F32, 400), t(I32, 400)], _call("scale")))
    for method in ("lt", "le", "eq"):
        for dtype in (F32, I32, U32, I64):
            found.append(sample(f"{method} {dtype.name}", [t(dtype, 30, 1), t(dtype, 12)], _call(method)))
    found.append(sample("eq BOOL", [t(BOOL, 8), t(BOOL, 8)], _call("eq")))
    for dtype in DType:
        types = [t(BOOL, 5, 1), t(dtype, 1, 30), t(dtype)]
        found.append(sample(f"select {dtype.name}", types, _call("select")))
    for method in ("and_", "or_", "xor"):
        for dtype in (I32, U32, I64, BOOL):
            found.append(sample(f"{method} {dtype.name}", [t(dtype, 90)] * 2, _call(method)))
    for method in ("shl", "shr"):
        for dtype in (I32, U32, I64):
            found.append(sample(f"{method} {dtype.name}", [t(dtype, 90)] * 2, _call(method)))
    found.append(sample("mulhi", [t(U32, 200)] * 2, _call("mulhi")))
    for source in DType:
        for target in DType:
            if source is not target and (source is not F32 or target in (I32, BOOL)):
                cast = partial(_cast, target=target)
                found.append(sample(f"cast {source.name} {target.name}", [t(source, 150)], cast))
    found.append(sample("bits", [t(F32, 200)], _call("bits")))
    found.append(sample("bits back", [t(U32, 200)], _call("bits")))
    return found


def _cast(b: Builder, x: Value, target: DType) -> Value:
    return b.cast(x, target)


def _rows() -> list[Sample]:
    found = []
    for p in (13, 20, 30):
        for fills in (("bits", "exponent"), ("bits", "bits")):
            types = [t(F32, 40, 5), t(I32, 40, 1)]
            found.append(sample(f"quantise {p} {fills[1]}", types, _call("quantise", p), fills))
    found.append(sample("quantise scalar", [t(F32), t(I32)], _call("quantise", 13), ("finite", "exponent")))
    found.append(sample("to_fixed", [t(F32, 300), t(I32, 300)], _call("to_fixed"), ("bits", "exponent")))
    for p in (26, 30, 0, 255):
        one = [t(I64, 100), t(I32, 100)]
        make = partial(_round_scaled, p=p)
        found.append(sample(f"round_scaled {p}", one, make, ("bits", "exponent")))
        two = [t(I64, 9, 8), t(I32, 9, 1), t(I32, 1, 8)]
        found.append(sample(f"round_scaled two {p}", two, make, ("bits", "exponent", "exponent")))
    found.append(sample("round_scaled any", [t(I64, 200), t(I32, 200), t(I32)], partial(_round_scaled, p=40)))
    return found


def _round_scaled(b: Builder, *xs: Value, p: int) -> Value:
    return b.round_scaled(*xs, p=p)


def _reductions() -> list[Sample]:
    found = []
    for length in (1, 2, 64, 256, 768):
        for how in ("bits", "finite", "ties"):
            for method in ("exponent", "max", "argmax"):
                name = f"{method} {length} {how}"
                found.append(sample(name, [t(F32, 3, length)], _call(method), (how,)))
        found.append(sample(f"dot {length}", [t(I32, 2, 3, length), t(I32, 2, 2, length)], _call("dot")))
    for length in (1, 32, 128, 512):
        found.append(sample(f"sum {length}", [t(I64, 5, length)], _call("sum")))
        found.append(sample(f"prefix_sum {length}", [t(I64, 2, length)], _call("prefix_sum")))
        types = [t(I32, length), t(I64, 2, 3, length)]
        found.append(sample(f"scatter_sum {length}", types, _call("scatter_sum", 7), ("index", "bits")))
    types = [t(I32, 384), t(I64, 384)]
    found.append(sample("scatter_sum row", types, _call("scatter_sum", 1), ("index", "bits")))
    found.append(sample("prefix_sum 384", [t(I64, 384)], _call("prefix_sum")))
    return found


def _philox() -> list[Sample]:
    key = t(U32, 2)
    return [
        sample("philox", [key, t(U32)], lambda b, k, s: b.philox(k, s, 7, (3, 11))),
        sample("philox one", [key, t(U32, 1, 1)], lambda b, k, s: b.philox(k, s, 2**32 - 1, ())),
    ]


SAMPLES = [*_movement(), *_elements(), *_rows(), *_reductions(), *_philox()]
