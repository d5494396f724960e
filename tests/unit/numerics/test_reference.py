"""The plain-integer reference against numpy on IEEE hardware, Python's fractions and published answers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.numerics.reference import floats, integers, philox, rows
from protocol.numerics.types import DType

PATTERNS = st.integers(0, 2**32 - 1)
I64S = st.integers(-(2**63), 2**63 - 1)


def to_numpy(x: int) -> np.float32:
    return np.uint32(x).view(np.float32)


def to_bits(x: np.float32) -> int:
    return floats.canonical(int(np.float32(x).view(np.uint32)))


@pytest.mark.parametrize(
    ("ours", "hardware"),
    [(floats.add, np.add), (floats.sub, np.subtract), (floats.mul, np.multiply), (floats.div, np.divide)],
)
@given(x=PATTERNS, y=PATTERNS)
@example(x=0x00000001, y=0x7F7FFFFF)
@example(x=0x80000000, y=0x80000000)
@example(x=0x00800000, y=0x3F7FFFFF)
def test_binary_operations_round_as_ieee_hardware(
    ours: Callable[[int, int], int], hardware: Callable[..., np.float32], x: int, y: int
) -> None:
    with np.errstate(all="ignore"):
        assert ours(x, y) == to_bits(hardware(to_numpy(x), to_numpy(y)))


@pytest.mark.parametrize(
    ("ours", "hardware"),
    [(floats.sqrt, np.sqrt), (floats.floor, np.floor), (floats.rint, np.rint), (floats.neg, np.negative)],
)
@given(x=PATTERNS)
@example(x=0x3F7FFFFF)
@example(x=0x80000001)
def test_unary_operations_round_as_ieee_hardware(
    ours: Callable[[int], int], hardware: Callable[..., np.float32], x: int
) -> None:
    with np.errstate(all="ignore"):
        assert ours(x) == to_bits(hardware(to_numpy(x)))


def value(x: int) -> Fraction:
    m, q = floats.exact(x)
    return Fraction(m) * Fraction(2) ** q


def is_nearest(result: int, true: Fraction) -> bool:
    """Whether `result` is the f32 nearest to `true`, which is not 0. Ties go to even.

    If the magnitude of `true` is at least 2^128 - 2^103, `result` must be the infinity with the sign of
    `true`.
    """
    if abs(true) >= 2**128 - 2**103:
        return result == (floats.INFINITY | (floats.SIGN if true < 0 else 0))
    magnitude = result & floats.MAGNITUDE
    error = abs(value(result) - true)
    beside = [m for m in (magnitude - 1, magnitude + 1) if 0 <= m < floats.INFINITY]
    distances = [abs(value(m | (result & floats.SIGN)) - true) for m in beside]
    signed = bool(result & floats.SIGN) == (true < 0)
    return signed and (error < min(distances) or (error == min(distances) and magnitude % 2 == 0))


@given(
    acc=I64S.filter(bool), e=st.integers(-95, 128), f=st.integers(-95, 128), p=st.sampled_from([26, 33, 40])
)
@example(acc=2**53 + 1, e=-95, f=-64, p=40)
@example(acc=-(2**63), e=128, f=-95, p=26)
@example(acc=1, e=-95, f=-29, p=26)  # 2^-150, half of the smallest subnormal, rounds to zero
@example(acc=-3, e=-95, f=-30, p=26)
def test_round_scaled_is_the_nearest_f32_of_the_exact_fraction(acc: int, e: int, f: int, p: int) -> None:
    assert is_nearest(rows.round_scaled(acc, (e, f), p), Fraction(acc) * Fraction(2) ** (e + f - p))


@given(x=I64S.filter(bool))
def test_integers_become_the_nearest_f32(x: int) -> None:
    assert is_nearest(integers.cast(x, DType.I64, DType.F32), Fraction(x))


@given(x=PATTERNS.filter(lambda x: x & floats.MAGNITUDE < floats.INFINITY), k=st.integers(-300, 300))
def test_scale_is_the_nearest_f32(x: int, k: int) -> None:
    true = value(x) * Fraction(2) ** k
    assert is_nearest(floats.scale(x, k), true) if true else floats.scale(x, k) == x


@given(
    row=st.lists(PATTERNS.filter(lambda x: x & floats.MAGNITUDE < floats.INFINITY), min_size=1, max_size=8)
)
def test_exponent_is_the_least_that_bounds_the_row(row: list[int]) -> None:
    e, largest = rows.exponent(row), max(abs(value(x)) for x in row)
    assert largest < Fraction(2) ** e
    assert e == rows.MIN_EXPONENT or largest >= Fraction(2) ** (e - 1)


@given(x=PATTERNS.filter(lambda x: x & floats.MAGNITUDE < floats.INFINITY), p=st.sampled_from([13, 20, 30]))
def test_quantised_integers_are_the_nearest_and_bounded(x: int, p: int) -> None:
    e = rows.exponent([x])
    m = rows.quantise(x, e, p)
    assert m == round(value(x) * Fraction(2) ** (p - e))
    assert abs(m) <= 2**p
    assert rows.to_fixed(x, e, p) == m


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_words(
    counter: tuple[int, int, int, int], key: tuple[int, int], words: str
) -> None:
    """Known answers of Random123 (kat_vectors, philox4x32, 10 rounds)."""
    assert philox.block(counter, key) == tuple(int(word, 16) for word in words.split())


def test_a_words_counter_holds_the_number_of_its_group_and_the_step_and_stream() -> None:
    words = philox.block((7, 5, 11, 13), (1, 2))
    first = 4 * (5 << 32 | 7)
    assert tuple(philox.word((1, 2), 11, 13, first + i) for i in range(4)) == words
