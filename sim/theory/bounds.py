"""Checks of the closed forms' arguments, and the error that they raise.

These functions only accept or reject a number. Studies parse and name their parameters elsewhere.
"""

from operator import index
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protocol.errors import AssayError

Values = NDArray[np.float64]
"""Float results, one per element of the broadcast arguments, or 0-dimensional for scalars."""


class TheoryError(AssayError, ValueError):
    """An argument that no task, verifier or bidder can have."""


def within(name: str, value: ArrayLike, least: float, most: float = np.inf) -> Values:
    """Return `value` as float64. Raise `TheoryError` if it has no elements, or if an element is not from
    `least` to `most`.
    """
    given = np.asarray(value, dtype=np.float64)
    if given.size == 0 or not bool(np.all((given >= least) & (given <= most))):
        bounds = f"at least {least:g}" if most == np.inf else f"from {least:g} to {most:g}"
        raise TheoryError(f"{name} must be {bounds}, got {value!r}")
    return given


def counts(name: str, value: ArrayLike, least: float, most: float = np.inf) -> Values:
    """Return whole numbers as float64; raise `TheoryError` for fractions and for numbers out of bounds."""
    given = within(name, value, least, most)
    if not bool(np.all(given == np.floor(given))) or not bool(np.all(np.isfinite(given))):
        raise TheoryError(f"{name} must be whole numbers, got {value!r}")
    return given


def count(name: str, value: SupportsIndex, least: int, most: int | None = None) -> int:
    """Return `value` as an int. A float would not be exact, because token units exceed 2^53. Raise
    `TheoryError` if `value` is out of bounds or not an integer.
    """
    try:
        given = index(value)
    except TypeError:
        raise TheoryError(f"{name} must be an integer, got {value!r}") from None
    if given < least or (most is not None and given > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise TheoryError(f"{name} must be {bounds}, got {given}")
    return given


def number(name: str, value: float, least: float, most: float = np.inf) -> float:
    """Return one number; raise `TheoryError` if it is out of bounds."""
    return float(within(name, value, least, most))
