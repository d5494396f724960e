"""Values of a swept parameter, as an operator writes them.

    500            one value             1:8            1, 2, ... 8 (whole ends, 8 included)
    100,200,500    a list                100:5000:20    20 values, evenly spaced, both ends included
                                         10:1000:3log   3 values in equal ratios: 10, 100, 1000

Items of a list may be ranges. Amounts are tokens. If the engine holds a unit in integers (`Unit.whole`), the
values computed for a range are rounded to the nearest integer.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sim.errors import SweepError
from sim.units import TOKEN, Unit

MOST_VALUES: Final = 1_000_000
"""Maximum number of values of a parameter. A larger number is assumed to be a typing error."""

_FORMS: Final = "write a value, a list a,b,c, a range a:b of whole numbers, or a:b:n or a:b:nlog for n values"
_COUNT: Final = re.compile(r"(\d+)(log)?")


def values(text: str, unit: Unit) -> tuple[float, ...]:
    """The values that `text` denotes, in the engine's units.

    Raises SweepError if `text` has none of the module's forms, denotes no values or too many, or repeats a
    value. Raises ParameterError for a value that is not a number of this unit.
    """
    found = [value for item in text.split(",") for value in _item(item.strip(), unit)]
    if len(set(found)) != len(found):
        raise SweepError(
            f"expected different values, got {text!r}, which has {len(found) - len(set(found))} twice once rounded "
            f"to {unit.value}; ask for fewer"
        )
    return tuple(found)


def _item(text: str, unit: Unit) -> list[float]:
    parts = text.split(":")
    if len(parts) == 1 and text:
        return [unit.parse(text)]
    if len(parts) not in (2, 3) or not all(parts):
        raise SweepError(f"expected values, got {text!r}; {_FORMS}")
    first, last = (_exact(part, unit) for part in parts[:2])
    if first > last:
        raise SweepError(f"expected a range that ascends, got {text!r}, which is empty; swap its ends")
    if len(parts) == 2:
        return _whole(text, first, last, unit)
    count = _COUNT.fullmatch(parts[2])
    number = int(count[1]) if count else 0
    if count is None or number < (1 if first == last else 2) or number > MOST_VALUES:
        raise SweepError(f"expected 2 to {MOST_VALUES:,} values, got {parts[2]!r} in {text!r}; {_FORMS}")
    if count[2]:
        return [_rounded(value, unit) for value in _geometric(text, first, last, number)]
    return [_rounded(first + (last - first) * i / max(1, number - 1), unit) for i in range(number)]


def _exact(text: str, unit: Unit) -> Fraction:
    unit.parse(text)  # Raises if it is not a number of this unit.
    return Fraction(Decimal(text)) * (TOKEN if unit is Unit.TOKENS else 1)


def _whole(text: str, first: Fraction, last: Fraction, unit: Unit) -> list[float]:
    """All whole numbers of a range, or whole tokens for amounts."""
    step = TOKEN if unit is Unit.TOKENS else 1
    if first % step or last % step:
        raise SweepError(f"expected whole ends, got {text!r}; {_FORMS}")
    number = int((last - first) // step) + 1
    if number > MOST_VALUES:
        raise SweepError(f"expected at most {MOST_VALUES:,} values, got {text!r}; write a:b:n")
    return [_rounded(first + step * i, unit) for i in range(number)]


def _geometric(text: str, first: Fraction, last: Fraction, number: int) -> list[Fraction]:
    if first <= 0:
        raise SweepError(f"expected ends above 0 for equal ratios, got {text!r}; start above 0")
    low, high = math.log(first), math.log(last)
    inner = [Fraction(math.exp(low + (high - low) * i / (number - 1))) for i in range(1, number - 1)]
    return [first, *inner, last][:number]


def _rounded(value: Fraction, unit: Unit) -> float:
    return round(value) if unit.whole else float(value)
