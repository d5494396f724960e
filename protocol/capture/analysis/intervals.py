"""Intervals of integers. Bounds are exact Python integers of any size; bools are 0 or 1, and floats have no bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node


@dataclass(frozen=True)
class Interval:
    """All integers from `low` to `high`, as the bounds of a tensor's elements. If `drawn` is not None, all
    elements were taken unchanged from the dataset, from constants or from numbers in the code, and `drawn`
    holds these sources: tensors (as nodes) and numbers.
    """

    low: int
    high: int
    drawn: frozenset[Node | int] | None = None

    @classmethod
    def of(cls, value: int) -> Interval:
        """The interval of one number."""
        return cls(int(value), int(value), frozenset([int(value)]))

    @property
    def in_32_bits(self) -> bool:
        """Whether every element fits an i32."""
        return self.inside(FULL)

    def inside(self, other: Interval) -> bool:
        """Whether `other` contains every number of this interval."""
        return other.low <= self.low and self.high <= other.high


UNKNOWN = Interval(-(2**63), 2**63 - 1)
"""The interval of an int64 about which nothing is known, such as a trained float converted to an integer. It
also stands for tensors that are not integers.
"""
BIT = Interval(0, 1)
FULL = Interval(-(2**31), 2**31 - 1)
"""The interval of all i32 values."""


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval that contains all given intervals."""
    every = list(intervals)
    drawn = [each.drawn for each in every if each.drawn is not None]
    return Interval(
        min(each.low for each in every),
        max(each.high for each in every),
        frozenset().union(*drawn) if len(drawn) == len(every) else None,
    )


def as_interval(value: Any) -> Interval:
    """An operand as an interval. A number is rounded towards zero and becomes the interval of that one
    integer; infinity and NaN become `UNKNOWN`.
    """
    if isinstance(value, Interval):
        return value
    return Interval.of(int(value)) if math.isfinite(value) else UNKNOWN


def wrapped(x: Interval, dtype: torch.dtype) -> Interval:
    """The interval after conversion to a type narrower than 64 bits: the whole range of the type if any value wraps."""
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return x if least <= x.low and x.high <= most else Interval(least, most)


def product(x: Interval, y: Interval) -> Interval:
    """The interval of all products of a number in `x` and a number in `y`."""
    ends = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return Interval(min(ends), max(ends), x.drawn if y == Interval.of(1) else None)


def all_patterns(*values: Any) -> Interval:
    """All integers that need no more bits than the widest operand; only nonnegative ones if no operand can be
    negative.
    """
    every = [as_interval(value) for value in values]
    bits = max(max(each.high.bit_length(), (-1 - each.low).bit_length()) for each in every)
    return Interval(-(1 << bits) if min(each.low for each in every) < 0 else 0, (1 << bits) - 1)
