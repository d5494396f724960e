"""Fast elementary functions on the CPU. Each operation list of `elementary` is recorded once. numpy then runs
the recorded list on one block of the argument after another.

A recorded list is a sequence of numpy loops over buffers of one block. A buffer is reused once its value is
dead, so all buffers stay in cache. Selection works on bits, because a masked copy costs as much as eight
additions. `elementary_torch` has the plain evaluation, for other devices.

The code here relies on a property of every list. The list's result does not depend on what a cast makes of
NaN or of numbers from 2^31 on, and it does not depend on the sign of a zero that `minimum` or `maximum`
returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 15
"""Number of elements in a buffer, which takes 128 KiB. A list needs three to six buffers, which fit in the L2
cache.
"""
BLOCKS_PER_THREAD = 2
"""Minimum blocks per thread: with fewer, another thread costs more than it saves."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Value:
    """A recorded value: a constant, the argument (`source` is -1), or the f32 or i32 result of loop number
    `source`.
    """

    source: int
    integer: bool = False
    constant: Any = None


@dataclass(frozen=True)
class Loop:
    """One numpy loop, its operands, and whether its result is i32."""

    run: Callable[..., Any]
    operands: tuple[Value, ...]
    integer: bool

    @property
    def variables(self) -> list[Value]:
        """The operands that are not constants."""
        return [value for value in self.operands if value.constant is None]


def _convert(x: Array, out: Array) -> None:
    np.copyto(out, x, casting="unsafe")


def _truth(compare: np.ufunc) -> Callable[..., None]:
    """Return a function that writes the comparison's result as i32: all bits set where it holds, else 0."""

    def run(x: Array, y: Array, out: Array) -> None:
        compare(x, y, out=out)
        np.negative(out, out=out)

    return run


def _minimum(x: Array, y: Array, out: Array) -> None:
    np.minimum(x, y, out=out)


def _maximum(x: Array, y: Array, out: Array) -> None:
    np.maximum(x, y, out=out)


_LESS, _EQUAL = _truth(np.less), _truth(np.equal)


def _spread(x: Value) -> Value:
    """A constant as a whole block, because numpy's minimum and maximum are slow on scalars; any other value
    unchanged.
    """
    return x if x.constant is None else Value(-1, x.integer, np.full(BLOCK, x.constant))


class Recording:
    """`Operations` that record loops; an operation on constants is evaluated instead."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []

    def _record(self, run: Callable[..., Any], operands: tuple[Value, ...], integer: bool) -> Value:
        if all(value.constant is not None for value in operands):
            folded = np.empty(1, np.int32 if integer else np.float32)
            run(*(value.constant for value in operands), folded)
            return Value(-1, integer, folded[0])
        self.loops.append(Loop(run, operands, integer))
        return Value(len(self.loops) - 1, integer)

    def _f32(self, run: Callable[..., Any], *operands: Value) -> Value:
        return self._record(run, operands, False)

    def _i32(self, run: Callable[..., Any], *operands: Value) -> Value:
        return self._record(run, operands, True)

    def f32(self, bits: int) -> Value:
        return Value(-1, constant=np.uint32(bits).view(np.float32))

    def i32(self, value: int) -> Value:
        return Value(-1, integer=True, constant=np.int32(value))

    def u32(self, value: int) -> Value:
        return Value(-1, integer=True, constant=np.uint32(value).view(np.int32))

    def add(self, x: Value, y: Value) -> Value:
        return self._f32(np.add, x, y)

    def sub(self, x: Value, y: Value) -> Value:
        return self._f32(np.subtract, x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self._f32(np.multiply, x, y)

    def div(self, x: Value, y: Value) -> Value:
        return self._f32(np.divide, x, y)

    def sqrt(self, x: Value) -> Value:
        return self._f32(np.sqrt, x)

    def neg(self, x: Value) -> Value:
        return self._f32(np.negative, x)

    def abs(self, x: Value) -> Value:
        return self._f32(np.abs, x)

    def minimum(self, x: Value, y: Value) -> Value:
        return self._f32(_minimum, x, _spread(y))

    def maximum(self, x: Value, y: Value) -> Value:
        return self._f32(_maximum, x, _spread(y))

    def rint(self, x: Value) -> Value:
        return self._f32(np.rint, x)

    def scale(self, x: Value, k: Value) -> Value:
        """x * 2^k for |k| <= 250, computed as (x * 2^half) * 2^(k - half) with half = k >> 1.

        The result is rounded only once if k >= 0, or if the first product is at least 2^-126 in magnitude.
        """
        half = self.shr_i32(k, self.i32(1))
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.sub_i32(k, half)))

    def power_of_two(self, k: Value) -> Value:
        return self.from_bits_i32(self._i32(np.left_shift, self.add_i32(k, self.i32(127)), self.i32(23)))

    def lt(self, x: Value, y: Value) -> Value:
        return self._i32(_LESS, x, y)

    def eq(self, x: Value, y: Value) -> Value:
        return self._i32(_EQUAL, x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.from_bits_i32(self.select_i32(condition, self.bits_i32(x), self.bits_i32(y)))

    def select_i32(self, condition: Value, x: Value, y: Value) -> Value:
        difference = self._i32(np.bitwise_xor, x, y)
        return self._i32(np.bitwise_xor, self.and_i32(difference, condition), y)

    def add_i32(self, x: Value, y: Value) -> Value:
        return self._i32(np.add, x, y)

    def sub_i32(self, x: Value, y: Value) -> Value:
        return self._i32(np.subtract, x, y)

    def and_i32(self, x: Value, y: Value) -> Value:
        return self._i32(np.bitwise_and, x, y)

    def or_u32(self, x: Value, y: Value) -> Value:
        return self._i32(np.bitwise_or, x, y)

    def shr_i32(self, x: Value, y: Value) -> Value:
        return self._i32(np.right_shift, x, y)

    def bits_i32(self, x: Value) -> Value:
        constant = None if x.constant is None else x.constant.view(np.int32)
        return Value(x.source, integer=True, constant=constant)

    def from_bits_i32(self, x: Value) -> Value:
        constant = None if x.constant is None else x.constant.view(np.float32)
        return Value(x.source, constant=constant)

    def f32_to_i32(self, x: Value) -> Value:
        return self._i32(_convert, self.rint(x))

    def i32_to_f32(self, x: Value) -> Value:
        return self._f32(_convert, x)

    eq_i32 = eq
    bits_u32 = bits_i32
    from_bits_u32 = from_bits_i32
    and_u32 = and_i32


@dataclass(frozen=True)
class Plan:
    """Loops with assigned buffers: buffer 0 is the argument, buffer 1 the result, the others are temporary."""

    steps: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, bool]], ...]
    buffers: int

    def run(self, x: Array, y: Array) -> None:
        """Evaluate the plan's function on x and write the result to y, both contiguous f32 of equal length;
        NaN is made canonical.

        All blocks have the same size, so the last one may overlap the one before it.
        """
        size = min(x.size, BLOCK)
        argument, result, calls = self._bind(size)
        with np.errstate(all="ignore"):
            for start in (*range(0, x.size - size, size), x.size - size):
                np.copyto(argument, x[start : start + size])
                for run, arrays in calls:
                    run(*arrays)
                if np.isnan(np.minimum.reduce(result)):
                    result[np.isnan(result)] = np.nan
                y[start : start + size] = result

    def _bind(self, size: int) -> tuple[Array, Array, list[tuple[Callable[..., Any], tuple[Any, ...]]]]:
        floats = list(np.empty((self.buffers, size), np.float32))
        views = (floats, [buffer.view(np.int32) for buffer in floats])
        calls = []
        for run, operands, (result, integer) in self.steps:
            arrays = [
                views[o[1]][o[0]] if isinstance(o, tuple) else o[:size] if o.ndim else o for o in operands
            ]
            calls.append((run, (*arrays, views[integer][result])))
        return floats[0], floats[1], calls


def plan(function: Callable[[Any, Any], Any]) -> Plan:
    """Record the operation list of `function`, and assign buffers to the list's values.

    A loop may overwrite an operand that is not needed again.
    """
    recording = Recording()
    last: int = function(recording, Value(-1)).source
    final_use = {value.source: n for n, loop in enumerate(recording.loops) for value in loop.variables}
    place, free, count, steps = {-1: 0}, [1], 2, []
    for number, loop in enumerate(recording.loops):
        operands = tuple(
            value.constant if value.constant is not None else (place[value.source], value.integer)
            for value in loop.operands
        )
        free += sorted({place[value.source] for value in loop.variables if final_use[value.source] == number})
        if not free:
            free, count = [count], count + 1
        place[number] = 1 if number == last else free.pop()
        steps.append((loop.run, operands, (place[number], loop.integer)))
    return Plan(tuple(steps), count)


_plan = lru_cache(maxsize=None)(plan)


def evaluate(function: Callable[[Any, Any], Any], x: Array, y: Array, threads: int) -> None:
    """Evaluate a list on x and write the result to y, both contiguous f32 of one axis, on up to `threads`
    threads.

    The threads end with the call, because a pool would not survive a fork. They use the caller's
    floating-point mode.
    """
    recorded = _plan(function)
    share = max(-(-x.size // threads), BLOCK * BLOCKS_PER_THREAD)
    parts = [(x[i : i + share], y[i : i + share]) for i in range(0, x.size, share)]
    others = [threading.Thread(target=recorded.run, args=part) for part in parts[1:]]
    for thread in others:
        thread.start()
    recorded.run(*parts[0])
    for thread in others:
        thread.join()
