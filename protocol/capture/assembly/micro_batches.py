"""Divides the batch into equal micro-batches. Each one is a unit (arithmetic.md section 5). The forward and
backward pass of a unit is a program, which the step calls once per unit.

Each call rounds the gradients of its unit. The gradient of the step is the sum over all units, divided by
their number. Up to `MOST` units are summed exactly, and the sum is rounded. If there are more units, rounded
sums are summed in the same way. The calls are independent, so workers can run them in any order. If they run
one after the other, only the activations of one unit are in memory.

Loss and metrics are also means over the units. Buffers that a model accumulates into, as batch norm does,
receive the contributions of the units one after the other, as when torch accumulates gradients
(`accumulation`). Other written buffers are averaged if they are f32, and otherwise taken from the first unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from protocol.capture.lowering.concatenation import concatenated
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.units import MOST, sum_units
from protocol.program.types import TensorType, contiguous_strides

Evaluate = Callable[[Builder, Sequence[Value], Sequence[Value], Value, Value], Sequence[Value]]
"""A function that adds the instructions of a step to a builder, and returns the step's results. Its arguments
are the builder, a sequence of the parameters and buffers, a sequence of the batch's tensors, a key, and the
counter that keys random numbers.
"""


class Accumulated(NamedTuple):
    """A buffer that units accumulate into: each unit keeps `share` of the contents and adds its own contribution."""

    given: int
    """The buffer's position among the `given` inputs of `evaluate`."""
    share: float


SMALL = 1 << 16
"""The smallest size, in bytes, of a tensor that a call passes individually. Smaller tensors are concatenated,
because copying them takes less time than a separate instruction.
"""
MOST_BYTES = 1_600
"""Limit, in bytes, on the total size of the encoded types of the tensors that are passed individually. The
limit applies to a call's operands and, separately, to its results. Together with the batch and the
concatenated rest, these tensors must fit an instruction's 4,096 bytes and 255 operands.
"""


def mean_over_units(
    b: Builder,
    evaluate: Evaluate,
    given: Sequence[Value],
    dataset: Sequence[Value],
    index: Value,
    key: Value,
    step: Value,
    units: int,
    accumulated: Mapping[int, Accumulated],
) -> list[Value]:
    """The results of `evaluate`, averaged over `units` equal parts of the rows `index`, i32 [B]. The results
    at the positions in `accumulated` are accumulated instead.

    The random numbers of a unit are keyed by step * units + unit. These keys are distinct as long as they
    stay below 2^32.
    """
    rows = index.shape[0] // units
    buffers = [each.given for each in accumulated.values()]
    handed = [k for k in range(len(given)) if k not in buffers]
    outer = CallLayout([given[k].type for k in handed])
    passed = outer.pack(b, [given[k] for k in handed])
    batch = [TensorType(t.dtype, (rows, *t.shape[1:])) for t in dataset]
    body = Builder("micro_batch")
    shared = dict(zip(handed, outer.unpack(body, [body.input(value.type) for value in passed])))
    shared |= {k: body.constant(given[k].dtype, given[k].shape, 0) for k in buffers}
    rest = [body.input(type_) for type_ in (*batch, key.type, step.type)]
    found = evaluate(body, [shared[k] for k in range(len(given))], rest[:-2], rest[-2], rest[-1])
    averaged = [k for k in range(len(found)) if k not in accumulated]
    inner, added = (CallLayout([found[k].type for k in places]) for places in (averaged, accumulated))
    packed = inner.pack(body, [found[k] for k in averaged])
    for value in (*packed, *added.pack(body, [found[k] for k in accumulated])):
        body.output(value)
    program = body.build()
    first = b.mul(step, b.u32(units))
    sums = [given[k] for k in buffers]

    def run(unit: int) -> tuple[Value, ...]:
        mine = b.slice(index, 0, unit * rows, (unit + 1) * rows)
        counter = b.add(first, b.u32(unit))
        results = b.call(program, *passed, *(b.gather(t, mine) for t in dataset), key, counter)
        more = added.unpack(b, results[len(packed) :])
        for k, (each, new) in enumerate(zip(accumulated.values(), more, strict=True)):
            kept = sums[k]
            if each.share != 1:
                kept = b.mul(b.constant(DType.F32, (), each.share), kept)
            sums[k] = b.add(new, kept)
        return results[: len(packed)]

    means = dict(zip(averaged, inner.unpack(b, _sums(b, run, 0, units, units)), strict=True))
    means |= dict(zip(accumulated, sums, strict=True))
    return [means[k] for k in range(len(found))]


def _sums(
    b: Builder, run: Callable[[int], Sequence[Value]], first: int, count: int, divisor: int
) -> list[Value]:
    """The results of `run`, summed over the units `first` to `first` + `count` - 1 and divided by `divisor`.
    At most `MOST` results are added at a time. Results that are not f32 are taken from the first unit.
    """
    size = 1
    while size * MOST < count:
        size *= MOST
    parts = []
    for at in range(first, first + count, size):
        inside = min(size, first + count - at)
        parts.append(run(at) if inside == 1 else _sums(b, run, at, inside, 1))
    return [
        sum_units.call(b, *column, divisor=divisor) if column[0].dtype is DType.F32 else column[0]
        for column in zip(*parts, strict=True)
    ]


class CallLayout:
    """The layout in which a call passes tensors of the given types.

    Tensors of at least `SMALL` bytes are passed individually; the largest have priority if `MOST_BYTES`
    does not allow all. All others are concatenated into one vector per element type.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = tuple(types)
        together: dict[DType, list[int]] = defaultdict(list)
        alone, room = [], MOST_BYTES
        for k in sorted(range(len(types)), key=lambda k: -types[k].nbytes):
            size = len(types[k].encode()) + 4  # an operand also names its leaf
            if types[k].nbytes >= SMALL and size <= room:
                alone.append(k)
                room -= size
            else:
                together[types[k].dtype].append(k)
        self._groups = [[k] for k in sorted(alone)] + [sorted(group) for group in together.values()]

    def pack(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        """Turn `values`, which have the layout's types, into the tensors that a call passes."""
        return [
            values[group[0]]
            if len(group) == 1
            else concatenated(b, [b.reshape(values[k], (values[k].type.elements,)) for k in group])
            for group in self._groups
        ]

    def unpack(self, b: Builder, passed: Sequence[Value]) -> list[Value]:
        """The values that `pack` was given, recovered from its result."""
        found: dict[int, Value] = {}
        for group, value in zip(self._groups, passed, strict=True):
            at = 0
            for k in group:
                shape = self._types[k].shape
                found[k] = (
                    value if len(group) == 1 else b.strided(value, shape, contiguous_strides(shape), at)
                )
                at += self._types[k].elements
        return [found[k] for k in range(len(self._types))]
