"""Attention in the compiled library: whole chains of scores, softmax, dropout and products, by blocks of query rows.

What stands between the products of arithmetic.md section 4 in a step, a table of scores for every head, is never whole
in memory: native/attention.cpp computes a block of its rows, uses it and forgets it, and the backward pass computes it
again. Every number that leaves has the bits of the functions one after the other.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache, partial
from typing import NamedTuple

import torch
from torch import Tensor

from protocol.numerics.kernels.cases import Call, Layout, Order
from protocol.numerics.kernels.choice import kernel_for
from protocol.numerics.kernels.fused import DEVICE, digest, fused_for, numbers
from protocol.numerics.kernels.int16 import offsets_of
from protocol.numerics.kernels.native import library, variants

_log = logging.getLogger("assay.numerics")

WHOLE = 1 << 22
"""Scores of a head that its backward pass keeps whole, twice 16 MiB a thread; those of a larger one are made twice."""
ROWS = 120
"""Queries of a block, as in native/attention.cpp."""
MASK = 0xFFFFFFFF
Pair = tuple[int, int]


class Kind(IntEnum):
    """AssayChangeKind of native/attention.h."""

    TIMES, OVER, FILL_TRUE, FILL_FALSE, PLUS = range(5)


@dataclass(frozen=True)
class Change:
    """What happens to every score: times or over `value`; `value` where a mask (bool) is true or is false; plus a table
    (f32). Masks and tables broadcast to the scores' shape [… M, N], or have it but for how the heads are laid out."""

    kind: Kind
    value: float = 0.0
    table: Tensor | None = None


@dataclass(frozen=True)
class Dropout:
    """Elements whose word of `numerics.philox` is below `below` are kept, times `kept`; all others are times 0."""

    key: Tensor
    step: Tensor
    stream: int
    below: int
    kept: float


@dataclass(frozen=True)
class Forward:
    """P = softmax(changes(q k^T)), dropped, times v. Contracted axes are the last: q [… M, D], k [… N, D], v [… E, N].

    `scores` and `out` are the bits of the operands of both products, 13 or 20.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    changes: Sequence[Change]
    safe: bool
    dropout: Dropout | None
    scores: Pair
    out: Pair


@dataclass(frozen=True)
class Backward:
    """The gradients of the values, the queries and the keys, from `g`, that of the result.

    g [… M, E] with v [… N, E] gives the gradient of P (bits `of_p`); P^T with g_v [… E, M] that of the values (bits
    `of_v`, P's first); the scores' gradient, changed by `changes`, with k_q [… D, N] that of the queries (`of_q`, the
    scores' first) and its transpose with q_k [… D, M] that of the keys (`of_k`, the scores' first). The gradient of the
    values is [… N, E], that of the keys [… N, D]; `v_turned` and `k_turned` swap their axes.
    """

    forward: Forward
    g: Tensor
    v: Tensor
    g_v: Tensor
    k_q: Tensor
    q_k: Tensor
    changes: Sequence[Change]
    of_p: Pair
    of_v: Pair
    of_q: Pair
    of_k: Pair
    v_turned: bool = False
    k_turned: bool = False


class Matrix(ctypes.Structure):
    """AssayMatrix of native/attention.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("term_stride", ctypes.c_int64),
        ("bits", ctypes.c_int32),
    )


class ChangeRecord(ctypes.Structure):
    """AssayChange of native/attention.h."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("value", ctypes.c_float),
        ("data", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
    )


MATRICES = ("q", "k", "p_out", "v_out", "g", "v", "p_v", "g_v", "s_q", "k_q", "s_k", "q_k")

SIDEWAYS = frozenset(("v_out", "g_v", "k_q", "q_k"))
"""Those that come from a matrix of tokens with the tokens as terms."""


class Problem(ctypes.Structure):
    """AssayAttention of native/attention.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("heads", "queries", "keys", "inner", "width")),
        *((name, Matrix) for name in MATRICES),
        ("changes", ctypes.c_void_p),
        ("back_changes", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("change_count", "back_count", "safe", "dropout")),
        *((name, ctypes.c_uint32) for name in ("key0", "key1", "step", "stream")),
        ("below", ctypes.c_uint64),
        ("kept", ctypes.c_float),
        ("v_turned", ctypes.c_int32),
        ("k_turned", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("out", "grad_q", "grad_k", "grad_v")),
        ("whole", ctypes.c_int64),
        ("variant", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    )


class Fused:
    """The fused chain of one instruction set."""

    def __init__(self, variant: str, whole: int = WHOLE) -> None:
        self.name = f"attention-{variant}"
        self._variant = variant
        self._whole = whole

    def forward(self, given: Forward) -> Tensor:
        """f32 [… M, E], new and contiguous."""
        call = _Call(given)
        out = torch.empty(*given.q.shape[:-1], given.v.shape[-2])
        call.problem.out = out.data_ptr()
        self._run("attention", call.problem)
        return out

    def backward(self, given: Backward) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the values, the queries and the keys, new and contiguous."""
        call = _Call(given.forward, given)
        lead, (m, d) = given.g.shape[:-2], given.forward.q.shape[-2:]
        n, e = given.v.shape[-2:]
        of_v = torch.empty(*lead, *((e, n) if given.v_turned else (n, e)))
        of_q = torch.empty(*lead, m, d)
        of_k = torch.empty(*lead, *((d, n) if given.k_turned else (n, d)))
        problem = call.problem
        problem.grad_v, problem.grad_q, problem.grad_k = (x.data_ptr() for x in (of_v, of_q, of_k))
        self._run("attention_grad", problem)
        return of_v, of_q, of_k

    def _run(self, function: str, problem: Problem) -> None:
        problem.variant, problem.threads, problem.whole = (
            variants()[self._variant],
            torch.get_num_threads(),
            self._whole,
        )
        if getattr(library(), f"assay_{function}")(ctypes.byref(problem)) != 0:
            raise MemoryError("no memory for a block of attention; make the batch or the context smaller")


class _Call:
    """The problem for the library, with all the memory that it points to."""

    def __init__(self, f: Forward, b: Backward | None = None) -> None:
        self._kept: list[object] = []
        m, n = f.q.shape[-2], f.k.shape[-2]
        self._scores = torch.Size((*f.q.shape[:-2], m, n))
        self.problem = problem = Problem(math.prod(f.q.shape[:-2]), m, n, f.q.shape[-1], f.v.shape[-2])
        given = {"q": (f.q, f.scores[0]), "k": (f.k, f.scores[1]), "v_out": (f.v, f.out[1])}
        problem.p_out.bits = f.out[0]
        if b is not None:
            given |= {"g": (b.g, b.of_p[0]), "v": (b.v, b.of_p[1]), "g_v": (b.g_v, b.of_v[1])}
            given |= {"k_q": (b.k_q, b.of_q[1]), "q_k": (b.q_k, b.of_k[1])}
            problem.p_v.bits, problem.s_q.bits, problem.s_k.bits = b.of_v[0], b.of_q[0], b.of_k[0]
            problem.back_changes, problem.back_count = self._changes(b.changes)
            problem.v_turned, problem.k_turned = b.v_turned, b.k_turned
        for name, (x, bits) in given.items():
            setattr(problem, name, self._matrix(x, bits, name in SIDEWAYS))
        problem.changes, problem.change_count = self._changes(f.changes)
        problem.safe = f.safe
        if f.dropout is not None:
            drop = f.dropout
            problem.dropout, problem.stream, problem.below, problem.kept = (
                1,
                drop.stream,
                drop.below,
                drop.kept,
            )
            words = (*drop.key.reshape(2).tolist(), *drop.step.reshape(1).tolist())
            problem.key0, problem.key1, problem.step = (word & MASK for word in words)

    def _matrix(self, x: Tensor, bits: int, sideways: bool) -> Matrix:
        """A matrix whose terms lie side by side, or, `sideways`, whose rows do; copied if it lies otherwise."""
        x = x.detach()
        beside = x.mT if sideways else x
        if beside.stride(-1) != 1 and beside.shape[-1] != 1:
            beside = beside.contiguous()
        offsets = offsets_of(tuple(beside.shape[:-2]), beside.stride()[:-2])
        self._kept += [beside, offsets]
        strides = (1, beside.stride(-2)) if sideways else (beside.stride(-2), 1)
        return Matrix(beside.data_ptr(), ctypes.addressof(offsets), *strides, bits)

    def _changes(self, changes: Sequence[Change]) -> tuple[int, int]:
        records = (ChangeRecord * max(len(changes), 1))()
        for record, change in zip(records, changes):
            record.kind, record.value = int(change.kind), change.value
            if change.table is not None:
                table = change.table.detach()
                if table.dim() and table.shape[-1] != 1 and table.stride(-1) != 1:
                    table = table.contiguous()
                if math.prod(table.shape[:-2]) != self.problem.heads or table.shape[-2:] != self._scores[-2:]:
                    table = table.expand(self._scores)
                offsets = offsets_of(tuple(table.shape[:-2]), table.stride()[:-2])
                self._kept += [table, offsets]
                record.data, record.offsets = table.data_ptr(), ctypes.addressof(offsets)
                record.row_stride, record.column_stride = table.stride()[-2:]
        self._kept.append(records)
        return ctypes.addressof(records), len(changes)


class Plan(NamedTuple):
    """What the products of a chain depend on: queries M, keys N, terms of the scores D, columns of the values E, and
    the bits of `Forward` and `Backward` (None without a backward pass)."""

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


def attention_for(plan: Plan) -> Fused | None:
    """The chain for a plan, or None: nothing compiled, not allowed, or not passed.

    Its products and its functions are those of one instruction set, which both must have passed with before; products
    are tried once more for every class of shapes that they will meet here (`cases`).
    """
    functions = fused_for(torch.ones(1))
    variant = None if functions is None else functions.name.removeprefix("fused-")
    if variant is None or variant not in variants() or not hasattr(library(), "assay_attention_grad"):
        return None
    if not _passes(variant):
        return None
    for (px, py), call in _calls(plan):
        if kernel_for(DEVICE, px, py, call).name != f"int16-{variant}":
            return None
    return Fused(variant)


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


@cache
def _passes(variant: str) -> bool:
    wrong = [name for name, made in trial(Fused(variant)).items() if made != DIGESTS[name]]
    wrong += [name for name, made in trial(Fused(variant, whole=1)).items() if made != DIGESTS[name]]
    if wrong:
        _log.warning("fused attention of %s is not used: wrong bits in %s", variant, ", ".join(wrong))
    return not wrong


def trial(fused: Fused) -> dict[str, str]:
    """Digests of both directions for hard operands of both kinds."""
    found = {}
    for name, given in CASES.items():
        b = given()
        found[name] = digest(fused.forward(b.forward))
        found[f"{name}_grad"] = digest(fused.backward(b))
    return found


def _case(wild: bool) -> Backward:
    """Two heads of 130 queries, more than a block. Tame: a causal mask, whose hidden scores nobody computes. Wild:
    numbers of all kinds, a table for a mask, gradients turned."""
    m, n, d, e = (130, 133, 5, 7) if wild else (130, 130, 6, 3)
    q, k, v, g = (
        _rows(seed, rows, columns, wild)
        for seed, rows, columns in ((21, m, d), (22, n, d), (23, n, e), (24, m, e))
    )
    hidden = torch.ones(m, n, dtype=torch.bool).triu(1)
    scale = Change(Kind.TIMES, 0.40824828)
    changes: tuple[Change, ...]
    back: tuple[Change, ...]
    drop: Dropout | None
    if wild:
        table = torch.where(hidden, -math.inf, numbers(25, m, n).nan_to_num(0.5, 1.0, -1.0).clamp(-9.0, 9.0))
        changes, back, drop = (Change(Kind.OVER, 2.5), Change(Kind.PLUS, table=table)), (), None
    else:
        changes = (scale, Change(Kind.FILL_TRUE, -math.inf, hidden))
        back = (Change(Kind.FILL_FALSE, 0.0, ~hidden), scale)
        words = torch.tensor([11, -5, 3], dtype=torch.int32)
        drop = Dropout(words[:2], words[2], 4, 0xC0000000, 1 / 0.75)
    forward = Forward(q, k, v.mT, changes, wild, drop, (13, 13), (20, 20))
    others = (g, v, g.mT, k.mT, q.mT)
    return Backward(forward, *others, back, (13, 13), (20, 20), (20, 20), (20, 20), wild, wild)


def _rows(seed: int, rows: int, columns: int, wild: bool) -> Tensor:
    """f32 [2, rows, columns]; the first head is of ordinary size even in the wild case."""
    table = torch.stack([numbers(seed, rows, 67)[:, :columns], numbers(seed + 40, rows, 67)[:, :columns]])
    ordinary = torch.stack(
        [numbers(s, 3 * rows, 67)[2::3][:, :columns].nan_to_num(1.0, 2.0, -2.0) for s in (seed, seed + 40)]
    )
    ordinary = ordinary.clamp(-8.0, 8.0)
    return torch.stack([ordinary[0], table[1]]) if wild else ordinary


CASES: Mapping[str, Callable[[], Backward]] = {"tame": partial(_case, False), "wild": partial(_case, True)}
DIGESTS = {
    "tame": "7e2b716527ffe923",
    "tame_grad": "59c3c0f81fdd8211",
    "wild": "9af3e55d3e977fe4",
    "wild_grad": "b986e48d3021ae26",
}
"""Of the plain functions one after the other (tests/unit/numerics/test_attention.py)."""
