"""Small random programs for property tests. Each instruction takes operands from a pool of values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from torch import Tensor

from protocol.numerics.types import DType
from protocol.program import Builder, Op, Program, RuleError, TensorType, Value, repeat
from tests.unit.program.samples import fill

SHAPES = ((), (1,), (4,), (3, 4), (3, 1), (2, 3, 4), (1, 256), (300,))


MOST_ELEMENTS = 4096


class Bounded(Builder):
    """A builder that refuses values too large to judge element by element."""

    def _append(
        self, op: Op, operands: Sequence[Value], results: Sequence[TensorType], attributes: bytes
    ) -> tuple[Value, ...]:
        for type_ in results:
            if type_.elements > MOST_ELEMENTS:
                raise RuleError(f"at most {MOST_ELEMENTS} elements", str(type_), operation=op.label)
        return super()._append(op, operands, results, attributes)


@dataclass
class Pool:
    """The builder and the values recorded so far."""

    b: Builder
    r: random.Random
    values: list[Value]

    @property
    def v(self) -> Value:
        """A random value."""
        return self.r.choice(self.values)

    @property
    def ranked(self) -> Value:
        """A random value of rank 1 or more."""
        return self.r.choice([value for value in self.values if value.shape])


def _scatter_sum(p: Pool) -> Value:
    """A `scatter_sum` of a random value. The index consists of the first elements of a second random value."""
    x = p.b.pad_rows(p.b.cast(p.ranked, DType.I64), 0)
    index = p.b.cast(p.b.strided(p.ranked, (x.shape[-1],), (1,)), DType.I32)
    return p.b.scatter_sum(index, x, p.r.randint(1, 9))


MOVES: tuple[Callable[[Pool], Value], ...] = (
    lambda p: p.b.constant(p.r.choice(list(DType)), p.r.choice(SHAPES), p.r.getrandbits(1)),
    lambda p: p.b.add(p.v, p.v),
    lambda p: p.b.sub(p.v, p.v),
    lambda p: p.b.mul(p.v, p.v),
    lambda p: p.b.div(p.v, p.v),
    lambda p: p.b.minimum(p.v, p.v),
    lambda p: p.b.maximum(p.v, p.v),
    lambda p: p.b.sqrt(p.v),
    lambda p: p.b.neg(p.v),
    lambda p: p.b.abs(p.v),
    lambda p: p.b.floor(p.v),
    lambda p: p.b.rint(p.v),
    lambda p: p.b.scale(p.v, p.v),
    lambda p: p.b.lt(p.v, p.v),
    lambda p: p.b.le(p.v, p.v),
    lambda p: p.b.eq(p.v, p.v),
    lambda p: p.b.select(p.v, p.v, p.v),
    lambda p: p.b.and_(p.v, p.v),
    lambda p: p.b.or_(p.v, p.v),
    lambda p: p.b.xor(p.v, p.v),
    lambda p: p.b.shl(p.v, p.v),
    lambda p: p.b.shr(p.v, p.v),
    lambda p: p.b.mulhi(p.v, p.v),
    lambda p: p.b.cast(p.v, p.r.choice(list(DType))),
    lambda p: p.b.bits(p.v),
    lambda p: p.b.exponent(p.v),
    lambda p: p.b.quantise(p.v, p.v, p.r.choice((13, 20, 30))),
    lambda p: p.b.to_fixed(p.v, p.v),
    lambda p: p.b.round_scaled(p.v, p.v, p=30),
    lambda p: p.b.dot(p.v, p.v),
    lambda p: p.b.sum(p.v),
    lambda p: p.b.max(p.v),
    lambda p: p.b.argmax(p.v),
    lambda p: p.b.prefix_sum(p.b.pad_rows(p.b.cast(p.ranked, DType.I64), 0)),
    _scatter_sum,
    lambda p: p.b.gather(p.v, p.v),
    lambda p: p.b.pad_rows(p.ranked, p.r.getrandbits(1)),
    lambda p: p.b.flip(p.ranked, 0),
    lambda p: p.b.transpose(p.ranked, 0, -1),
    lambda p: p.b.concat([x := p.ranked, x], 0),
    lambda p: p.b.reshape(x := p.v, (x.type.elements,)),
    lambda p: p.b.expand(p.v, p.r.choice(SHAPES)),
    lambda p: p.b.philox(p.v, p.v, p.r.getrandbits(32), p.r.choice(SHAPES)),
)


def _try(move: Callable[[Pool], Value], pool: Pool) -> list[Value]:
    """A list with the value of a move; empty if ten draws find no fitting operands."""
    for _ in range(10):
        with suppress(RuleError):
            return [move(pool)]
    return []


@dataclass(frozen=True)
class Loop:
    """A loop: its body, how many of the body's first inputs it carries (`kept`), and how often it runs the
    body (`count`).
    """

    body: Program
    kept: int
    count: int


def random_loop(r: random.Random) -> Loop:
    """A loop with one or two carried values and one fixed value.

    For each carried value, the body returns the latest value of the same type.
    """
    b = Bounded("body")
    kept = r.randint(1, 2)
    types = [TensorType(r.choice(list(DType)), r.choice(((), (4,), (3, 4)))) for _ in range(kept)]
    carried = [b.input(type_) for type_ in types]
    pool = Pool(b, r, [*carried, b.input(TensorType(DType.U32, (2,)))])
    for _ in range(8):
        pool.values.extend(_try(r.choice(MOVES), pool))
    for type_ in types:
        b.output(next(value for value in reversed(pool.values) if value.type == type_))
    return Loop(b.build(), kept, r.choice((1, 3, 16, 18)))


def random_program(
    r: random.Random, callees: list[Program], moves: int = 35, loops: Sequence[Loop] = ()
) -> Program:
    """A random program. Its inputs are a key and two to five more. It calls each of the callees, and contains
    each of the loops.
    """
    b = Bounded("random")
    pool = Pool(b, r, [b.input(TensorType(DType.U32, (2,)))])
    pool.values.extend(
        b.input(TensorType(r.choice(list(DType)), r.choice(SHAPES))) for _ in range(r.randint(2, 5))
    )
    for _ in range(moves):
        pool.values.extend(_try(r.choice(MOVES), pool))
    for callee in callees:
        pool.values.extend(b.call(callee, *_operands(pool, callee)))
    for loop in loops:
        operands = _operands(pool, loop.body)
        pool.values.extend(repeat(b, loop.body, loop.count, operands[: loop.kept], operands[loop.kept :]))
    for _ in range(3):
        b.output(pool.v)
    b.output(pool.values[-1])
    return b.build()


def _operands(pool: Pool, callee: Program) -> list[Value]:
    """For each input of the callee, the latest value of its type, or ones if no value has this type."""
    by_type = {value.type: value for value in pool.values}
    return [by_type.get(type_) or pool.b.constant(type_.dtype, type_.shape, 1) for type_ in callee.inputs]


def random_inputs(program: Program, r: random.Random) -> list[Tensor]:
    """Random inputs of a program: edge patterns and random bits."""
    return [fill(type_, "bits", r) for type_ in program.inputs]
