"""Shape classes of attention: arithmetic.md section 8, "Self-tests". See `shape_classes` for products.

A `Plan` holds everything that determines the path through native/attention.cpp. `shape_class_of` gives the
smallest plan with the same path. That plan has the same changes, dropout and passes as the original, and the
same number of elements after the last full vector of a row. It has a second block of queries or of keys if
the original has one. It keeps the scores if the original does; otherwise it computes them twice. Its products
have their own classes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from protocol.numerics.kernels.shape_classes import least_size

WHOLE = 1 << 22
"""If a head has at most this many scores, the backward pass keeps them (32 MiB per thread). If it has more,
the backward pass computes them twice.
"""
ROWS = 120
"""Queries of a block, as in native/attention.cpp."""
LANES = 32
"""Sizes that are equal modulo this number have the same remainder after the last full vector."""
Pair = tuple[int, int]


class Kind(IntEnum):
    """AssayChangeKind of native/attention.h."""

    TIMES, OVER, FILL_TRUE, FILL_FALSE, PLUS = range(5)


Form = tuple[Kind, float]
Forms = tuple[Form, ...]
"""The kind and the value of each change of the scores, or of their gradients; masks and tables are left out."""


class Plan(NamedTuple):
    """Everything that determines the path through fused attention.

    There are `m` queries and `n` keys. A score is a sum of `d` terms, and the values have `e` columns. The
    bits and the flags are those of `Forward` and `Backward`; `of_p`, `of_v`, `of_q` and `of_k` are None
    without a backward pass. `changes` are the changes of the scores, and `back` those of their gradients.
    `dropout` says whether there is dropout.
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
    """A small plan to test, and `whole`, a limit for its test. The backward pass keeps a head's scores if
    there are at most `whole` of them. If `whole` is 1, it always computes the scores twice.
    """

    plan: Plan
    whole: int


def shape_class_of(plan: Plan) -> ShapeClass:
    """The smallest plan that takes the same path."""
    d, e = least_size(plan.d, (16,)), least_size(plan.e, (16,))
    least = plan._replace(m=_size(plan.m), n=_size(plan.n), d=d, e=e)
    return ShapeClass(least, WHOLE if plan.m * plan.n <= WHOLE else 1)


def _size(size: int) -> int:
    """The smallest size above LANES with the same remainder after full vectors as `size`. If `size` has a
    second block, the smallest such size above ROWS. A size of at most LANES is unchanged.
    """
    least = ROWS + 1 if size > ROWS else LANES + 1
    return size if size < least else least + (size - least) % LANES
