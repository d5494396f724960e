"""Amounts of tokens and of the chain's coin, and spans of time, as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.node.words import amount, coin, duration, exact, tokens

TOKEN = 10**18


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        (0, "0"),
        (1, "0.000000000000000001"),
        (TOKEN, "1"),
        (1_000 * TOKEN, "1,000"),
        (45 * TOKEN + TOKEN // 4, "45.25"),
        (1_234_567 * TOKEN, "1,234,567"),
        (TOKEN // 3, "0.333333"),
        (2 * TOKEN // 3, "0.666667"),
        (314_159_265_358, "0.000000314159"),
        (-5 * TOKEN, "-5"),
        (10**12 * TOKEN, "1,000,000,000,000"),
    ],
)
def test_an_amount_has_no_exponent_and_no_idle_zeros(units: int, shown: str) -> None:
    assert amount(units) == shown


@given(st.integers(0, 10**33))
def test_what_may_be_given_at_most_is_rounded_down_and_is_close(units: int) -> None:
    shown = float(amount(units, at_most=True).replace(",", "")) * TOKEN
    assert shown <= units * (1 + 1e-15)
    assert shown >= units * (1 - 1e-5)


def test_names_of_amounts() -> None:
    assert (tokens(TOKEN), tokens(0), tokens(2 * TOKEN)) == ("1 token", "0 tokens", "2 tokens")
    assert coin(TOKEN // 2) == "0.5 of the chain's coin"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0.9, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (70, "1 min 10 s"),
        (3_600, "1 h"),
        (3_601, "1 h"),
        (7_500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
        (31 * 86_400, "31 d"),
        (1 << 64, "more than 100 years"),
    ],
)
def test_a_span_is_said_by_its_two_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_span_is_said_whole_where_sums_are_compared() -> None:
    assert duration(93_784, 4) == "1 d 2 h 3 min 4 s"


def test_an_amount_of_any_length_is_said() -> None:
    assert amount(10**300) == f"{10**282:,}"


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        (0, "0"),
        (1, "0.000000000000000001"),
        (10**17 + 1, "0.100000000000000001"),
        (90 * TOKEN, "90"),
        (-TOKEN, "-1"),
    ],
)
def test_an_exact_amount_has_all_digits(units: int, shown: str) -> None:
    assert exact(units) == shown
    assert exact(10**300 + 1) == f"{10**282}.000000000000000001"
