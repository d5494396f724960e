"""The self-test of fused attention for each shape class (`attention_shape_classes`): arithmetic.md section 8.

`Plain` computes the expected results from whole tables. It uses float64 products, the elementary functions as
lists of operations (arithmetic.md section 6), and torch's operations, but no compiled code of the project.
Three heads are tested: an ordinary one under a causal mask; one with rows of very different magnitude and a
mask that hides keys anywhere, so that no part may be skipped; and one with an infinity and a query that sees
no key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from protocol.numerics import elementary
from protocol.numerics.elementwise import add, div, mul, sub, unsigned
from protocol.numerics.kernels.attention import Backward, Change, Dropout, Forward, Fused
from protocol.numerics.kernels.attention_shape_classes import Form, Kind, Plan
from protocol.numerics.kernels.float64 import Float64
from protocol.numerics.philox_torch import philox
from protocol.numerics.reductions import max_f32, sum_f32
from protocol.numerics.torch_operations import TorchOperations
from protocol.numerics.types import canonical

RESULTS = (
    "the result",
    "the gradient of the values",
    "the gradient of the queries",
    "the gradient of the keys",
)
HEADS = 3
_products = Float64()


def failure_of_class(chain: Fused, plan: Plan) -> str | None:
    """A message about wrong bits in either pass of a plan, or None if every bit is right."""
    given = operands(plan)
    forward = given.forward if isinstance(given, Backward) else given
    plain = Plain()
    found, right = [chain.forward(forward)], [plain.forward(forward)]
    if isinstance(given, Backward):
        found += chain.backward(given)
        right += plain.backward(given)
    for name, one, other in zip(RESULTS, found, right):
        if not torch.equal(one.view(torch.int32), canonical(other).contiguous().view(torch.int32)):
            return f"{name} of attention of {plan.m} queries to {plan.n} keys ({plan}) has wrong bits"
    return None


class Plain:
    """Computes attention one operation after another, on whole tables. The forward pass and the backward pass
    share the probabilities.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Forward, tuple[Tensor, Tensor]]] = []

    def forward(self, f: Forward) -> Tensor:
        """As `Fused.forward`."""
        return _products.contract(self._probabilities(f)[1], f.v, *f.out)

    def backward(self, b: Backward) -> tuple[Tensor, Tensor, Tensor]:
        """As `Fused.backward`."""
        kept, dropped = self._probabilities(b.forward)
        of_p = self._drop(b.forward, _products.contract(b.g, b.v, *b.of_p))
        of_s = _changed(mul(kept, sub(of_p, sum_f32(mul(of_p, kept)))), b.changes)
        of_v = _products.contract(dropped.mT, b.g_v, *b.of_v)
        of_q = _products.contract(of_s, b.k_q, *b.of_q)
        of_k = _products.contract(of_s.mT, b.q_k, *b.of_k)
        return of_v.mT if b.v_turned else of_v, of_q, of_k.mT if b.k_turned else of_k

    def _probabilities(self, f: Forward) -> tuple[Tensor, Tensor]:
        if not any(f is one for one, _ in self._known):
            self._known = [(f, self._computed(f))]
        return self._known[0][1]

    def _computed(self, f: Forward) -> tuple[Tensor, Tensor]:
        x = _changed(_products.contract(f.q, f.k, *f.scores), f.changes)
        largest = max_f32(x)
        powers = canonical(elementary.exp(TorchOperations(x.device), sub(x, largest)))
        kept = div(powers, sum_f32(powers))
        kept = kept.masked_fill(largest == -math.inf, 0.0) if f.safe else kept
        return kept, self._drop(f, kept)

    def _drop(self, f: Forward, x: Tensor) -> Tensor:
        if f.dropout is None:
            return x
        words = philox(f.dropout.key, f.dropout.step, f.dropout.stream, x.shape)
        drawn = (unsigned(words) < f.dropout.below).to(torch.float32)
        return mul(x, mul(drawn, torch.tensor(f.dropout.kept, dtype=torch.float32, device="cpu")))


def _changed(x: Tensor, changes: Sequence[Change]) -> Tensor:
    for change in changes:
        value = torch.tensor(change.value, dtype=torch.float32, device="cpu")
        if change.table is None:
            x = (mul if change.kind is Kind.TIMES else div)(x, value)
        elif change.kind is Kind.PLUS:
            x = add(x, change.table)
        else:
            x = torch.where(change.table == (change.kind is Kind.FILL_TRUE), value, x)
    return x


@lru_cache(maxsize=4)
def operands(plan: Plan) -> Forward | Backward:
    """Test operands for both passes, or for the forward pass if the plan has no backward pass."""
    q, k, v, g = (
        _tokens(
            seed,
            rows,
            columns,
        )
        for seed, (rows, columns) in enumerate(
            ((plan.m, plan.d), (plan.n, plan.d), (plan.n, plan.e), (plan.m, plan.e))
        )
    )
    hidden = _hidden(plan.m, plan.n)
    words = torch.tensor([11, -5, 3], dtype=torch.int32, device="cpu")
    drop = Dropout(words[:2], words[2], 4, 0xC0000000, 1 / 0.75) if plan.dropout else None
    changes = [_change(form, hidden) for form in plan.changes]
    forward = Forward(q, k, v.mT, changes, plan.safe, drop, plan.scores, plan.out)
    if plan.of_p is None or plan.of_v is None or plan.of_q is None or plan.of_k is None:
        return forward
    bits = (plan.of_p, plan.of_v, plan.of_q, plan.of_k)
    back = [_change(form, hidden) for form in plan.back]
    return Backward(forward, g, v, g.mT, k.mT, q.mT, back, *bits, plan.v_turned, plan.k_turned)


def _change(form: Form, hidden: Tensor) -> Change:
    kind, value = form
    if kind in (Kind.TIMES, Kind.OVER):
        return Change(kind, value)
    if kind is Kind.PLUS:
        return Change(kind, value, torch.where(hidden, -math.inf, _mixed(9, hidden.shape)))
    return Change(kind, value, hidden if kind is Kind.FILL_TRUE else ~hidden)


def _hidden(m: int, n: int) -> Tensor:
    """bool [3, M, N]: whether a key is hidden from a query, for each of the three heads.

    Head 0: later keys are hidden. Head 1: some keys are hidden, at any place except the first. Head 2: later
    keys are hidden, and the second query sees no key at all.
    """
    causal = torch.ones(m, n, dtype=torch.bool, device="cpu").triu(max(n - m, 0) + 1)
    anywhere = _mixed(7, (m, n)) > 2.0
    anywhere[:, 0] = False
    alone = causal.clone()
    alone[1:2] = True
    return torch.stack((causal, anywhere, alone))


def _tokens(seed: int, rows: int, columns: int) -> Tensor:
    """f32 [3, rows, columns], strided as in a model. With seed 0, which is for the queries, the last query of
    the last head holds an infinity.
    """
    x = _mixed(seed, (rows, 2 * HEADS, columns))[:, 1::2].transpose(0, 1)
    x[1, 1::3] *= 2.0**20
    x[1, 2::3] *= 2.0**-60
    if seed == 0:
        x[2, -1, 0] = math.inf
    return x


def _mixed(seed: int, shape: Sequence[int]) -> Tensor:
    """Deterministic f32 in [-4, 4)."""
    k = torch.arange(math.prod(shape), dtype=torch.int64, device="cpu") + seed * 1_000_003
    words = ((k * 2654435761) ^ (k * 40503 << 7)) & 0xFFFFFF
    return (words.to(torch.float32) * 2.0**-21 - 4.0).reshape(tuple(shape))
