"""Shape classes of attention: arithmetic.md section 8, "Self-tests". Those of products are in `shape_classes`.

A `Plan` holds everything that determines the path through native/attention.cpp. `shape_class_of` gives the smallest
plan with the same path: a second block of queries and of keys if there is one, the same number of elements after the
last full vector of a row, the same changes, dropout and directions, and scores that are kept or computed twice. Its
products have their own classes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from protocol.numerics.kernels.shape_classes import least_size

WHOLE = 1 << 22
"""Largest scores of a head that its backward pass keeps, twice 16 MiB a thread; larger ones are computed twice."""
ROWS = 120
"""Queries of a block, as in native/attention.cpp."""
LANES = 32
"""Sizes that are equal modulo this have the same remainder after the last vector."""
Pair = tuple[int, int]


class Kind(IntEnum):
    """AssayChangeKind of native/attention.h."""

    TIMES, OVER, FILL_TRUE, FILL_FALSE, PLUS = range(5)


Form = tuple[Kind, float]
Forms = tuple[Form, ...]
"""Changes of scores without their tables: what happens, and the value."""


class Plan(NamedTuple):
    """What determines a chain: queries M, keys N, terms of the scores D, columns of the values E, the bits of
    `Forward` and `Backward` (None without a backward pass), then the changes between the products.
    """

    m: int
    n: int
    d: int
    e: int
    scores: Pair
    out: Pair
    of_p: Pair | None = None
    of_v: Pair | None = None
    of_q: Pair | None = None
    of_k: Pair | None = None
    v_turned: bool = False
    k_turned: bool = False
    changes: Forms = ()
    back: Forms = ()
    safe: bool = False
    dropout: bool = False


class ShapeClass(NamedTuple):
    """What is tested: a small plan, and the scores of a head that are kept whole."""

    plan: Plan
    whole: int


def shape_class_of(plan: Plan) -> ShapeClass:
    """The smallest plan that takes the same path."""
    d, e = least_size(plan.d, (16,)), least_size(plan.e, (16,))
    least = plan._replace(m=_size(plan.m), n=_size(plan.n), d=d, e=e)
    return ShapeClass(least, WHOLE if plan.m * plan.n <= WHOLE else 1)


def _size(size: int) -> int:
    """The least number of queries, or of keys, that has a second block if this one has, and the same remainder."""
    least = ROWS + 1 if size > ROWS else LANES + 1
    return size if size < least else least + (size - least) % LANES
