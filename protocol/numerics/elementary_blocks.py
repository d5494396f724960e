"""Elementary functions on the CPU at speed: a list of `elementary`, recorded once, run block by block by numpy.

A recorded list is a row of numpy loops over buffers of one block, which are used again as soon as the value in them
is dead: all stays in cache and nothing is allocated on the way. Selection is done on bits, as a masked copy costs eight
additions. `elementary_torch` has the plain evaluation, for other devices. This one takes for granted what is so in
every list: a cast of NaN or from 2^31 on, and the sign of a zero out of `minimum` or `maximum`, do not reach the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.numerics.elementary import Operations

BLOCK = 1 << 14
"""Elements of a buffer: 64 KiB. The five to eight that a list needs fit a second-level cache."""
BLOCKS_PER_THREAD = 4
"""Below this a second thread costs more than it saves."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Word:
    """A value while recording: the loop that made it (-1: the argument) read as f32 or i32; or a constant."""

    source: int
    integer: bool = False
    constant: Any = None


@dataclass(frozen=True)
class Loop:
    """One numpy loop with its operands and whether its result is i32."""

    run: Callable[..., Any]
    operands: tuple[Word, ...]
    integer: bool


def _convert(x: Array, out: Array) -> None:
    np.copyto(out, x, casting="unsafe")


def _truth(compare: np.ufunc) -> Callable[..., None]:
    """The comparison as i32: all ones where it holds."""

    def run(x: Array, y: Array, out: Array) -> None:
        compare(x, y, out=out)
        np.negative(out, out=out)

    return run


_LESS, _EQUAL = _truth(np.less), _truth(np.equal)


class Recording:
    """`Operations` that write down loops."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []

    def _f32(self, run: Callable[..., Any], *operands: Word) -> Word:
        self.loops.append(Loop(run, operands, False))
        return Word(len(self.loops) - 1)

    def _i32(self, run: Callable[..., Any], *operands: Word) -> Word:
        self.loops.append(Loop(run, operands, True))
        return Word(len(self.loops) - 1, integer=True)

    def f32(self, bits: int) -> Word:
        return Word(-1, constant=np.uint32(bits).view(np.float32))

    def i32(self, value: int) -> Word:
        return Word(-1, integer=True, constant=np.int32(value))

    def u32(self, value: int) -> Word:
        return Word(-1, integer=True, constant=np.uint32(value).view(np.int32))

    def add(self, x: Word, y: Word) -> Word:
        return self._f32(np.add, x, y)

    def sub(self, x: Word, y: Word) -> Word:
        return self._f32(np.subtract, x, y)

    def mul(self, x: Word, y: Word) -> Word:
        return self._f32(np.multiply, x, y)

    def div(self, x: Word, y: Word) -> Word:
        return self._f32(np.divide, x, y)

    def sqrt(self, x: Word) -> Word:
        return self._f32(np.sqrt, x)

    def neg(self, x: Word) -> Word:
        return self._f32(np.negative, x)

    def abs(self, x: Word) -> Word:
        return self._f32(np.abs, x)

    def minimum(self, x: Word, y: Word) -> Word:
        return self._f32(np.minimum, x, y)

    def maximum(self, x: Word, y: Word) -> Word:
        return self._f32(np.maximum, x, y)

    def rint(self, x: Word) -> Word:
        return self._f32(np.rint, x)

    def scale(self, x: Word, k: Word) -> Word:
        """By 2^(k >> 1) and the rest. The first product is exact for |x| > 2^-50 or k >= 0, and |k| <= 250."""
        half = self.shr_i32(k, self.i32(1))
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.sub_i32(k, half)))

    def power_of_two(self, k: Word) -> Word:
        return self.from_bits_i32(self._i32(np.left_shift, self.add_i32(k, self.i32(127)), self.i32(23)))

    def lt(self, x: Word, y: Word) -> Word:
        return self._i32(_LESS, x, y)

    def eq(self, x: Word, y: Word) -> Word:
        return self._i32(_EQUAL, x, y)

    def select(self, condition: Word, x: Word, y: Word) -> Word:
        return self.from_bits_i32(self.select_i32(condition, self.bits_i32(x), self.bits_i32(y)))

    def select_i32(self, condition: Word, x: Word, y: Word) -> Word:
        difference = self._i32(np.bitwise_xor, x, y)
        return self._i32(np.bitwise_xor, self.and_i32(difference, condition), y)

    def add_i32(self, x: Word, y: Word) -> Word:
        return self._i32(np.add, x, y)

    def sub_i32(self, x: Word, y: Word) -> Word:
        return self._i32(np.subtract, x, y)

    def and_i32(self, x: Word, y: Word) -> Word:
        return self._i32(np.bitwise_and, x, y)

    def or_u32(self, x: Word, y: Word) -> Word:
        return self._i32(np.bitwise_or, x, y)

    def shr_i32(self, x: Word, y: Word) -> Word:
        return self._i32(np.right_shift, x, y)

    def bits_i32(self, x: Word) -> Word:
        constant = None if x.constant is None else x.constant.view(np.int32)
        return Word(x.source, integer=True, constant=constant)

    def from_bits_i32(self, x: Word) -> Word:
        return Word(x.source)

    def f32_to_i32(self, x: Word) -> Word:
        return self._i32(_convert, self.rint(x))

    def i32_to_f32(self, x: Word) -> Word:
        return self._f32(_convert, x)

    eq_i32 = eq
    bits_u32 = bits_i32
    from_bits_u32 = from_bits_i32
    and_u32 = and_i32


@dataclass(frozen=True)
class Plan:
    """Loops with buffers assigned: buffer 0 is the argument, buffer 1 the result, the others come and go."""

    steps: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, bool]], ...]
    buffers: int

    def run(self, x: Array, y: Array) -> None:
        """Write the function of x to y, both contiguous f32 of any same length; NaN comes out canonical."""
        spare = np.empty((self.buffers, min(x.size, BLOCK)), np.float32)
        with np.errstate(all="ignore"):
            for start in range(0, x.size, BLOCK):
                self._block(x[start : start + BLOCK], y[start : start + BLOCK], spare)

    def _block(self, x: Array, y: Array, spare: Array) -> None:
        floats = [x, y, *(buffer[: x.size] for buffer in spare)]
        views = (floats, [buffer.view(np.int32) for buffer in floats])
        for run, operands, (result, integer) in self.steps:
            run(*(views[o[1]][o[0]] if type(o) is tuple else o for o in operands), out=views[integer][result])
        if np.isnan(np.minimum.reduce(y)):
            y[np.isnan(y)] = np.nan


def plan(function: Callable[[Operations[Word], Word], Word]) -> Plan:
    """Record a list and assign buffers: a loop may write where an operand was that nothing needs any more."""
    recording = Recording()
    last = function(recording, Word(-1)).source
    uses = {w.source: i for i, loop in enumerate(recording.loops) for w in loop.operands if w.constant is None}
    place, free, count, steps = {-1: 0}, [1], 2, []
    for number, loop in enumerate(recording.loops):
        operands = tuple(
            (place[w.source], w.integer) if w.constant is None else w.constant for w in loop.operands
        )
        dead = {w.source for w in loop.operands if w.constant is None and uses[w.source] == number} - {-1}
        free += sorted(place[source] for source in dead)
        if number == last:
            place[number] = 1
        elif not free:
            free, count = [count], count + 1
        place[number] = place.get(number) if number == last else free.pop()
        steps.append((loop.run, operands, (place[number], loop.integer)))
    return Plan(tuple(steps), count - 2)


_plan = lru_cache(maxsize=None)(plan)


def evaluate(function: Callable[[Any, Any], Any], x: Array, y: Array, threads: int) -> None:
    """Write a list's function of x to y, both contiguous f32 of one axis, on up to `threads` threads.

    The threads live for this call only: a pool would not survive a fork.
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
