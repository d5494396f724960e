"""Which chain of attention a process uses: native/attention.cpp where it may be used and has proved itself.

Its products and its functions are those that the library pairs (native/sets.h), and both must have passed before;
products are tried once more for every class of shapes that they will meet here (`cases`), the chain itself for the
class of the plan (`attention_cases`, `attention_trial`). One wrong bit, and it is used for nothing any more in this
process, which says so once; instructions then run one after the other, as products and functions that passed compute
them.
"""

from __future__ import annotations

import logging
import os
from functools import cache, lru_cache

import torch

from protocol.numerics.kernels.attention import Fused
from protocol.numerics.kernels.attention_self_test import failure_of
from protocol.numerics.kernels.attention_shape_classes import ROWS, WHOLE, Case, Pair, Plan, case_of
from protocol.numerics.kernels.compiled import Compiled
from protocol.numerics.kernels.dispatch import VARIABLE, allowed, sound
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.kernels.fused_self_test import DEVICE
from protocol.numerics.kernels.shape_classes import Call, Layout, Order

_log = logging.getLogger("assay.numerics")


def attention_for(plan: Plan) -> Fused | None:
    """The chain for a plan, or None: nothing compiled, not allowed, or not passed."""
    functions = fused_for(torch.ones(1))
    if functions is None:
        return None
    for kernel in allowed(os.environ.get(VARIABLE)):
        if not isinstance(kernel, Compiled):
            return None  # whose products are the faster ones, by the order asked for
        if functions.name == f"fused-{kernel.others}" and all(
            sound(kernel, DEVICE, px, py, call) for (px, py), call in _calls(plan)
        ):
            return _chain(kernel.variant, plan)
    return None


def _chain(variant: str, plan: Plan) -> Fused | None:
    case = case_of(plan)
    return _of(variant, WHOLE) if passes(_of(variant, case.whole), case) else None


@cache
def _of(variant: str, whole: int) -> Fused:
    return Fused(variant, whole)


_wrong: set[str] = set()
"""Names of chains that gave a wrong bit."""


def passes(chain: Fused, case: Case) -> bool:
    """Whether it has given no wrong bit so far, this case included."""
    return chain.name not in _wrong and _tried(chain, case)


@cache
def _tried(chain: Fused, case: Case) -> bool:
    """The trial of a case. Once in a process; a failure is logged here."""
    try:
        wrong = failure_of(chain, case.plan)
    except (RuntimeError, MemoryError) as error:
        _log.warning(
            "fused %s is not used for this kind of attention: it does not run (%s)", chain.name, error
        )
        return False
    if wrong is not None:
        _wrong.add(chain.name)
        _log.warning("fused %s is not used: %s", chain.name, wrong)
    return wrong is None


@lru_cache(maxsize=256)
def _calls(plan: Plan) -> tuple[tuple[Pair, Call], ...]:
    """The products of a chain: blocks of rows with as many keys as a causal mask leaves them, then whole tables."""
    m, n, d, e, *_ = plan
    blocks = {min(m, ROWS), m % ROWS or min(m, ROWS)}
    keys = {n, *range(ROWS, n, ROWS)}
    found: set[tuple[Pair, Call]] = set()
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


def _call(m: int, n: int, k: int, x: Layout, y: Layout, given: bool = False) -> Call:
    return Call(m, n, k, 1, x, y, False, (False, given), False, 1)
