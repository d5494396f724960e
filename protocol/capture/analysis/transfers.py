"""Bounds of the integers that an operation computes, from the bounds of its operands.

`TRANSFERS` has every operation that may have an integer result and for which `lowering` has a rule.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node
from torch.fx.node import map_arg

from protocol.capture.analysis.intervals import (
    BIT,
    UNKNOWN,
    Interval,
    all_patterns,
    as_interval,
    hull,
    product,
    wrapped,
)

aten = torch.ops.aten
Transfer = Callable[..., Interval]
TRANSFERS: dict[OpOverload, Transfer] = {}
"""The transfer of each operation: `transfer(node, *args, **kwargs)` returns the bounds of the result. Tensors
of integers and bools are passed as intervals, all other tensors as UNKNOWN.
"""
MOVING = {
    *(aten.detach.default, aten.alias.default, aten.clone.default, aten.lift_fresh_copy.default),
    *(aten.t.default, aten.transpose.int, aten.permute.default, aten.view.default, aten._unsafe_view.default),
    *(aten.reshape.default, aten.expand.default, aten.slice.Tensor, aten.select.int, aten.squeeze.default),
    *(
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.unsqueeze.default,
        aten.diagonal.default,
        aten.unfold.default,
    ),
    *(aten.split.Tensor, aten.split_with_sizes.default, aten.unsafe_split.Tensor, aten.unbind.int),
    *(aten.flip.default, aten.roll.default, aten.repeat.default),
}
"""Operations on one tensor that only move its elements."""


def bounds_of(node: Node, known: Mapping[Node, Interval]) -> Interval:
    """Bounds of an operation's result in torch's result type, given the bounds `known` of its operands.

    Bounds of an int64 may lie outside 64 bits. If there are several results, the bounds apply to those that
    are integers.
    """
    value = node.meta.get("val")  # absent if the result was never used
    dtype = value.dtype if isinstance(value, Tensor) else torch.int64
    if dtype is torch.bool:
        return BIT
    if value is None or dtype.is_floating_point or dtype.is_complex:
        return UNKNOWN
    if node.target is operator.getitem:
        return known[node.args[0]]  # type: ignore[index]
    if node.target not in TRANSFERS:
        return UNKNOWN
    args, kwargs = map_arg((node.args, node.kwargs), known.__getitem__)  # type: ignore[arg-type]
    found = TRANSFERS[node.target](node, *args, **kwargs)
    return found if dtype is torch.int64 else wrapped(found, dtype)


def is_integer(node: Node) -> bool:
    """Whether a node is a tensor of integers; bools are not."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex():
        return False
    return value.dtype is not torch.bool


def is_hull(node: Node) -> bool:
    """Whether each bound of an operation's result is a bound of one of its operands, or a constant. Such a
    bound moves no further than the bounds of the operands do.
    """
    return node.target is operator.getitem or TRANSFERS.get(node.target) in _HULLS  # type: ignore[call-overload]


def transfers(*overloads: OpOverload) -> Callable[[Transfer], Transfer]:
    """Decorator: register a function as the transfer of some operations."""

    def register(transfer: Transfer) -> Transfer:
        TRANSFERS.update(dict.fromkeys(overloads, transfer))
        return transfer

    return register


@transfers(*MOVING)
def _moved(_: Node, x: Interval, *__: Any, **___: Any) -> Interval:
    return x


@transfers(
    *(aten.amax.default, aten.amin.default, aten.max.default, aten.min.default),
    *(aten.index_select.default, aten.gather.default, aten.embedding.default, aten.index.Tensor),
    aten._unsafe_index.Tensor,
    *(aten.upsample_nearest2d.default, aten.upsample_nearest2d.vec),
)
def _chosen(_: Node, x: Interval, *__: Any, **___: Any) -> Interval:
    return x


@transfers(aten.cat.default, aten.stack.default)
def _together(_: Node, parts: list[Interval], *__: Any) -> Interval:
    return hull(parts)


@transfers(aten.constant_pad_nd.default)
def _padded(_: Node, x: Interval, __: Any, value: int = 0) -> Interval:
    return hull([x, Interval.of(value)])


@transfers(aten.tril.default, aten.triu.default)
def _triangle(_: Node, x: Interval, *__: Any) -> Interval:
    return hull([x, Interval.of(0)])


@transfers(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def _where(_: Node, __: Any, x: Any, y: Any) -> Interval:
    return hull([as_interval(x), as_interval(y)])


@transfers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked(_: Node, x: Interval, __: Any, value: Any) -> Interval:
    return hull([x, as_interval(value)])


@transfers(aten.slice_scatter.default, aten.select_scatter.default)
def _written(_: Node, x: Interval, part: Interval, *__: Any) -> Interval:
    return hull([x, part])


@transfers(aten.scatter.src, aten.scatter.value)
def _scattered(_: Node, x: Interval, __: int, ___: Any, value: Any) -> Interval:
    return hull([x, as_interval(value)])


@transfers(aten.index_put.default, aten._unsafe_index_put.default)
def _put(_: Node, x: Interval, __: Any, values: Interval, accumulate: bool = False) -> Interval:
    return UNKNOWN if accumulate else hull([x, values])


@transfers(aten.copy.default, aten.fill.Scalar, aten.fill.Tensor)
def _filled(_: Node, __: Any, value: Any, *___: Any) -> Interval:
    return as_interval(value)


@transfers(aten.scalar_tensor.default)
def _one_value(_: Node, value: Any, **__: Any) -> Interval:
    return as_interval(value)


@transfers(aten.full.default, aten.full_like.default, aten.new_full.default)
def _full(_: Node, __: Any, *args: Any, **___: Any) -> Interval:
    return as_interval(args[-1])


@transfers(aten.ones_like.default, aten.ones.default, aten.new_ones.default)
def _ones(*_: Any, **__: Any) -> Interval:
    return Interval.of(1)


@transfers(
    *(aten.zeros_like.default, aten.zeros.default, aten.new_zeros.default, aten.zero.default),
    *(
        aten.new_empty.default,
        aten.new_empty_strided.default,
        aten.empty_like.default,
        aten.empty.memory_format,
    ),
)
def _zeros(*_: Any, **__: Any) -> Interval:
    return Interval.of(0)


@transfers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def _counted(node: Node, first: int, *rest: int, **_: Any) -> Interval:
    start, step = (first if rest else 0), (rest[1] if len(rest) > 1 else 1)
    ends = int(start), int(start) + (node.meta["val"].numel() - 1) * int(step)
    return Interval(min(ends), max(ends))


@transfers(aten._to_copy.default)
def _converted(_: Node, x: Interval, **__: Any) -> Interval:
    return x


@transfers(aten.add.Tensor, aten.add.Scalar)
def _sum_of_two(_: Node, x: Any, y: Any, alpha: int = 1) -> Interval:
    x, y = as_interval(x), product(as_interval(y), as_interval(alpha))
    return Interval(x.low + y.low, x.high + y.high)


@transfers(aten.sub.Tensor, aten.sub.Scalar)
def _difference(node: Node, x: Any, y: Any, alpha: int = 1) -> Interval:
    return _sum_of_two(node, x, y, -alpha)


@transfers(aten.rsub.Scalar, aten.rsub.Tensor)
def _difference_reversed(node: Node, x: Any, y: Any, alpha: int = 1) -> Interval:
    return _sum_of_two(node, y, x, -alpha)


@transfers(aten.mul.Tensor, aten.mul.Scalar)
def _product_of_two(_: Node, x: Any, y: Any) -> Interval:
    return product(as_interval(x), as_interval(y))


@transfers(aten.addcmul.default)
def _sum_andproduct(_: Node, x: Interval, y: Interval, z: Interval, *, value: int = 1) -> Interval:
    term = product(product(y, as_interval(value)), z)
    return Interval(x.low + term.low, x.high + term.high)


@transfers(aten.pow.Tensor_Scalar)
def _power(_: Node, x: Interval, exponent: int) -> Interval:
    ends = [x.low**exponent, x.high**exponent] if 0 <= exponent <= 64 else [UNKNOWN.low, UNKNOWN.high]
    if x.low < 0 < x.high:
        ends.append(0)
    return Interval(min(ends), max(ends))


@transfers(aten.neg.default)
def _negative(_: Node, x: Interval) -> Interval:
    return Interval(-x.high, -x.low)


@transfers(aten.abs.default)
def _magnitude(_: Node, x: Interval) -> Interval:
    return Interval(max(0, x.low, -x.high), max(-x.low, x.high))


@transfers(aten.sgn.default, aten.sign.default)
def _sign(_: Node, __: Interval) -> Interval:
    return Interval(-1, 1)


@transfers(aten.maximum.default)
def _maximum(_: Node, x: Interval, y: Interval) -> Interval:
    return Interval(max(x.low, y.low), max(x.high, y.high))


@transfers(aten.minimum.default)
def _minimum(_: Node, x: Interval, y: Interval) -> Interval:
    return Interval(min(x.low, y.low), min(x.high, y.high))


@transfers(aten.clamp.default, aten.clamp.Tensor)
def _clamped(node: Node, x: Interval, low: Any = None, high: Any = None) -> Interval:
    for bound, limit in ((low, _maximum), (high, _minimum)):
        x = x if bound is None else limit(node, x, as_interval(bound))
    return x


@transfers(aten.hardtanh.default)
def _clamped_to_one(node: Node, x: Interval, low: Any = -1, high: Any = 1) -> Interval:
    return _clamped(node, x, low, high)


@transfers(aten.clamp_min.default, aten.clamp_min.Tensor)
def _clamped_below(node: Node, x: Interval, low: Any) -> Interval:
    return _clamped(node, x, low)


@transfers(aten.clamp_max.default, aten.clamp_max.Tensor)
def _clamped_above(node: Node, x: Interval, high: Any) -> Interval:
    return _clamped(node, x, None, high)


@transfers(aten.relu.default)
def _not_negative(node: Node, x: Interval) -> Interval:
    return _clamped(node, x, 0)


@transfers(aten.floor_divide.default, aten.floor_divide.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode)
def _quotient(_: Node, x: Any, y: Any, *, rounding_mode: str = "floor") -> Interval:
    x = as_interval(x)
    if isinstance(y, int) and y > 0 and rounding_mode == "floor":
        return Interval(x.low // y, x.high // y)
    most = max(abs(x.low), abs(x.high))
    return Interval(-most, most)


@transfers(aten.remainder.Scalar, aten.remainder.Tensor)
def _remainder(_: Node, x: Any, y: Any) -> Interval:
    x = as_interval(x)
    if isinstance(y, int) and y > 0:
        one_period = x.low // y == x.high // y
        return Interval(x.low % y, x.high % y) if one_period else Interval(0, y - 1)
    most = max(abs(as_interval(y).low), abs(as_interval(y).high))
    return Interval(-most, most)


@transfers(aten.bitwise_and.Scalar, aten.bitwise_and.Scalar_Tensor, aten.bitwise_and.Tensor)
def _and(_: Node, x: Any, y: Any) -> Interval:
    masks = [each for each in (as_interval(x), as_interval(y)) if each.low >= 0]
    return Interval(0, min(each.high for each in masks)) if masks else all_patterns(x, y)


@transfers(
    *(aten.bitwise_or.Scalar, aten.bitwise_or.Scalar_Tensor, aten.bitwise_or.Tensor),
    *(aten.bitwise_xor.Scalar, aten.bitwise_xor.Scalar_Tensor, aten.bitwise_xor.Tensor),
)
def _or(_: Node, x: Any, y: Any) -> Interval:
    return all_patterns(x, y)


@transfers(aten.bitwise_not.default)
def _not(_: Node, x: Interval) -> Interval:
    return Interval(-1 - x.high, -1 - x.low)


@transfers(
    *(aten.__lshift__.Scalar, aten.__lshift__.Tensor),
    *(aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Tensor),
)
def _shifted_up(_: Node, x: Interval, count: Any) -> Interval:
    """Bounds of a left shift. Shifting by less than 0 or more than 63 places gives 0."""
    places = as_interval(count)
    shifted = product(x, Interval(1 << min(max(places.low, 0), 63), 1 << min(max(places.high, 0), 63)))
    return shifted if places.inside(Interval(0, 63)) else hull([shifted, Interval.of(0)])


@transfers(
    *(aten.__rshift__.Scalar, aten.__rshift__.Tensor),
    *(aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor),
)
def _shifted_down(_: Node, x: Interval, __: Any) -> Interval:
    return Interval(min(x.low, 0), max(x.high, -1))


@transfers(aten.sum.default, aten.sum.dim_IntList)
def _sum(node: Node, x: Interval, *_: Any, **__: Any) -> Interval:
    terms = _elements(node.args[0]) // max(1, node.meta["val"].numel())
    return Interval(x.low * terms, x.high * terms)


@transfers(aten.cumsum.default)
def _running_sum(node: Node, x: Interval, axis: int, **_: Any) -> Interval:
    terms = node.meta["val"].shape[axis] if node.meta["val"].dim() else 1
    return Interval(min(x.low, x.low * terms), max(x.high, x.high * terms))


@transfers(aten.argmax.default, aten.argmin.default)
def _place(node: Node, _: Any, axis: int | None = None, *__: Any) -> Interval:
    operand: Any = node.args[0]
    return Interval(0, (_elements(operand) if axis is None else _length(operand, axis)) - 1)


@transfers(aten.max.dim, aten.min.dim)
def _place_of_extreme(node: Node, x: Any, axis: int, *__: Any) -> Interval:
    operand: Any = node.args[0]
    places = Interval(0, _length(operand, axis) - 1)
    return hull([x, places]) if is_integer(operand) else places


@transfers(aten.max_pool2d_with_indices.default)
def _place_in_window(node: Node, *_: Any, **__: Any) -> Interval:
    operand: Any = node.args[0]
    return Interval(0, math.prod(operand.meta["val"].shape[-2:]) - 1)


def _length(node: Any, axis: int) -> int:
    """The length of an axis; 1 for a scalar, because torch reduces a scalar like a row of one element."""
    value: Tensor = node.meta["val"]
    return value.shape[axis] if value.dim() else 1


def _elements(node: Any) -> int:
    value: Tensor = node.meta["val"]
    return value.numel()


_HULLS = {
    *(_moved, _chosen, _together, _padded, _triangle, _where, _masked, _written, _scattered, _filled),
    *(_converted, _maximum, _minimum, _clamped, _clamped_to_one, _clamped_below, _clamped_above),
    _not_negative,
}
"""The transfers of the operations of `is_hull`."""
