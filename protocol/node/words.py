"""Numbers in a form for people: amounts in tokens and in the chain's coin, and durations.

Amounts are stored in units of 10^-18, and such numbers are hard to read in a terminal or a log. Programs get
them unchanged (`--json`).
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Final

DECIMALS: Final = 18
"""Decimals of the token, and of the chain's coin."""
DIGITS: Final = 6
"""Significant digits, or places after the point, to which fractions are rounded."""
LONGEST: Final = 100 * 365 * 86_400
"""Seconds above which a duration is shown as "more than 100 years"."""

_SPANS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def amount(units: int, *, at_most: bool = False) -> str:
    """An amount as a number, without the name of the token or coin: 1,000 or 0.25 or 0.000000314159. `units`
    counts units of 10^-18. Fractions are rounded to six places after the point, or to six significant digits
    if that is more precise. `at_most` rounds down, so that the text never shows more than the amount.
    """
    exact = Decimal(units).scaleb(-DECIMALS)
    places = max(DIGITS, DIGITS - 1 - exact.adjusted()) if units else 0
    rounding = ROUND_FLOOR if at_most else ROUND_HALF_EVEN
    context = Context(prec=max(1, exact.adjusted() + 1) + DECIMALS)  # exact, for a stranger's number too
    shown = f"{exact.quantize(Decimal(1).scaleb(-min(places, DECIMALS)), rounding, context):,f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def exact(units: int) -> str:
    """An amount as a number, without the name of the token or coin. It has all digits and no separators, so
    that programs can read it too.
    """
    shown = f"{Decimal(units).scaleb(-DECIMALS, Context(prec=len(str(units)) + DECIMALS)):f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def tokens(units: int, *, at_most: bool = False) -> str:
    """An amount of tokens, given in their units of 10^-18: 1,000 tokens, 1 token."""
    shown = amount(units, at_most=at_most)
    return f"{shown} token" if shown == "1" else f"{shown} tokens"


def coin(wei: int) -> str:
    """An amount of the chain's own currency, given in wei."""
    return f"{amount(wei)} of the chain's coin"


def duration(seconds: float, parts: int = 2) -> str:
    """A duration in days, hours, minutes and seconds: 45 s, 3 min, 2 h 5 min, 31 d. At most `parts` units are
    used, from the largest on. Smaller units are cut off, and zeros are left out. A negative duration is 0 s.
    """
    if seconds > LONGEST:
        return "more than 100 years"
    rest, shown = max(0, int(seconds)), list[tuple[int, str]]()
    for name, size in _SPANS:
        count, rest = divmod(rest, size)
        if count or shown:
            shown.append((count, name))
    return " ".join(f"{count} {name}" for count, name in shown[:parts] if count) or "0 s"
