"""Chooses fused attention: native/attention.cpp, if it is allowed and passes its self-tests.

Fused attention uses the products and functions that native/sets.h pairs, and both must have passed their
self-tests. The products are tested for every shape class that occurs in the plan. Fused attention as a whole
is tested for the plan's own class (`attention_shape_classes`, `attention_self_test`). After one wrong bit,
fused attention is not used again in this process: a warning says so once, and the instructions run separately
instead.
"""

from __future__ import annotations

import logging
import os
from functools import cache, lru_cache

import torch

from protocol.numerics.kernels.attention import Fused
from protocol.numerics.kernels.attention_self_test import failure_of_class
from protocol.numerics.kernels.attention_shape_classes import (
    ROWS,
    WHOLE,
    Pair,
    Plan,
    ShapeClass,
    shape_class_of,
)
from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.dispatch import VARIABLE, allowed, is_usable
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.kernels.fused_self_test import DEVICE
from protocol.numerics.kernels.shape_classes import Layout, Order, ProductCall

_log = logging.getLogger("assay.numerics")


def attention_for(plan: Plan) -> Fused | None:
    """The fused attention for a plan. None if it is not compiled, not allowed, or fails its self-tests, or if
    a product kernel that is not compiled is preferred.
    """
    functions = fused_for(torch.ones(1, dtype=torch.float32, device="cpu"))
    if functions is None:
        return None
    for kernel in allowed(os.environ.get(VARIABLE)):
        if not isinstance(kernel, Compiled):
            return None  # a kernel that is not compiled comes first in the order of preference
        if functions.name == f"fused-{kernel.others}" and all(
            is_usable(kernel, DEVICE, px, py, call) for (px, py), call in _calls(plan)
        ):
            return _chain(kernel.variant, plan)
    return None


def _chain(variant: str, plan: Plan) -> Fused | None:
    shape_class = shape_class_of(plan)
    return _of(variant, WHOLE) if passes(_of(variant, shape_class.whole), shape_class) else None


@cache
def _of(variant: str, whole: int) -> Fused:
    return Fused(variant, whole)


_failed: set[str] = set()
"""Names (`Fused.name`) of fused attention that gave a wrong bit."""


def passes(chain: Fused, shape_class: ShapeClass) -> bool:
    """Whether `chain`, which is fused attention with one instruction set, passes the self-test of this shape
    class and has never given a wrong bit.
    """
    return chain.name not in _failed and _tested(chain, shape_class)


@cache
def _tested(chain: Fused, shape_class: ShapeClass) -> bool:
    """Whether the self-test of a shape class passes. The test runs once in a process, and a failure is logged."""
    try:
        wrong = failure_of_class(chain, shape_class.plan)
    except (RuntimeError, MemoryError) as error:
        _log.warning(
            "fused %s is not used for this kind of attention: it does not run (%s)", chain.name, error
        )
        return False
    if wrong is not None:
        _failed.add(chain.name)
        _log.warning("fused %s is not used: %s", chain.name, wrong)
    return wrong is None


@lru_cache(maxsize=256)
def _calls(plan: Plan) -> tuple[tuple[Pair, ProductCall], ...]:
    """All products that a plan computes, each with the numbers of bits of its two factors.

    Products of a block of rows are listed for every number of keys with which they may be computed. A causal
    mask may hide the last keys from a block, so these numbers are N and all smaller multiples of `ROWS`. The
    other products contract over queries.
    """
    m, n, d, e, *_ = plan
    blocks = {min(m, ROWS), m % ROWS or min(m, ROWS)}
    keys = {n, *range(ROWS, n, ROWS)}
    found: set[tuple[Pair, ProductCall]] = set()
    for seen in keys:
        for rows in blocks:
            tables = [(plan.scores, d), (plan.of_p, e)]
            found |= {(bits, _call(rows, seen, k, TERMS, TERMS)) for bits, k in tables if bits is not None}
            columns = [(plan.out, e), (plan.of_q, d)]
            found |= {
                (bits, _call(rows, c, seen, TERMS, SIDE, True)) for bits, c in columns if bits is not None
            }
    for bits, c, turned in ((plan.of_v, e, plan.v_turned), (plan.of_k, d, plan.k_turned)):
        if bits is None:
            continue
        if m * n <= WHOLE:
            size, pair = ((c, n), bits[::-1]) if turned else ((n, c), bits)
            found.add((pair, _call(*size, m, SIDE, SIDE)))
        else:
            found |= {(bits, _call(n, c, rows, SIDE, TERMS)._replace(integers=True)) for rows in blocks}
    return tuple(sorted(found))


TERMS, SIDE = Layout(Order.TERMS, False, False), Layout(Order.ROWS, False, False)


def _call(m: int, n: int, k: int, x: Layout, y: Layout, given: bool = False) -> ProductCall:
    return ProductCall(m, n, k, 1, x, y, False, (False, given), False, 1)
