"""Attention in the compiled library: scores, softmax, dropout and products, by blocks of query rows.

Between the products (arithmetic.md section 4), each head has a table of scores. In the forward pass,
native/attention.cpp computes one block of the table's rows at a time, uses the block and discards it. The
backward pass computes the scores again, and keeps a head's whole table only if the table is small
(`attention_shape_classes.WHOLE`). Every result is bit-identical to that of the separate functions.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protocol.numerics.kernels.attention_shape_classes import WHOLE, Kind, Pair
from protocol.numerics.kernels.compiled import offsets_of
from protocol.numerics.kernels.native import empty, library, require_elements, variants
from protocol.numerics.types import NumericsError

MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Change:
    """A change of every score.

    TIMES multiplies a score by `value`, and OVER divides it by `value`. FILL_TRUE and FILL_FALSE replace a
    score by `value` where a bool mask is true or false, respectively. PLUS adds an f32 table. `table` is the
    mask or the added table. It broadcasts to the scores' shape [… M, N], or has other leading axes with the
    same number of elements in total.
    """

    kind: Kind
    value: float = 0.0
    table: Tensor | None = None


@dataclass(frozen=True)
class Dropout:
    """Dropout: multiplies an element by `kept` if the element's word of `numerics.philox` is less than
    `below`, and by 0 otherwise.
    """

    key: Tensor
    step: Tensor
    stream: int
    below: int
    kept: float


@dataclass(frozen=True)
class Forward:
    """Operands of the forward pass: dropout(P) v with P = softmax(changes(q k^T)).

    The last axis of each operand is contracted: q [… M, D], k [… N, D], v [… E, N]. `scores` and `out` give
    the number of bits, 13 or 20, of each factor of a product: `scores` for q and k, `out` for dropout(P) and
    v.
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
    """Operands of the backward pass, which gives the gradients of the values, the queries and the keys.

    `g` is the gradient of the forward pass's result, and P is the softmax's result. S is the gradient of the
    softmax's operand, after `changes` were applied to this gradient. Each product contracts the last axes of
    its two factors. `g_v`, `k_q` and `q_k` are separate operands, because a program may multiply by any
    tensors. In an ordinary backward pass, they are the transposes of g, k and q.

    A pair in the column "bits" has the number of bits of the left factor, then that of the right factor.

    | gradient of | product | bits |
    |---|---|---|
    | dropout(P) [… M, N] | g [… M, E] with v [… N, E] | `of_p` |
    | values [… N, E] | dropout(P)^T with g_v [… E, M] | `of_v` |
    | queries [… M, D] | S with k_q [… D, N] | `of_q` |
    | keys [… N, D] | S^T with q_k [… D, M] | `of_k` |

    With `v_turned`, the gradient of the values is [… E, N] instead. With `k_turned`, that of the keys is […
    D, N].
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
"""Those of the caller's matrices [rows, terms] whose terms are tokens; a product sums over the terms. In
memory, the elements of one term are adjacent. In the caller's other matrices, the elements of one row are
adjacent.
"""


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
    """Fused attention with one instruction set.

    Raises `NumericsError` if a matrix is not f32 on the CPU, or does not have the shape and the number of
    heads that `Forward` and `Backward` give; the library would read beyond the end of a smaller matrix.
    """

    def __init__(self, variant: str, whole: int = WHOLE) -> None:
        self.name = f"attention-{variant}"
        self._variant = variant
        self._whole = whole

    def forward(self, given: Forward) -> Tensor:
        """The result, f32 [… M, E], new and contiguous."""
        call = _Call(given)
        out = empty(*given.q.shape[:-1], given.v.shape[-2])
        call.problem.out = out.data_ptr()
        self._run("attention", call.problem)
        return out

    def backward(self, given: Backward) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the values, the queries and the keys, new and contiguous."""
        call = _Call(given.forward, given)
        lead, (m, d) = given.g.shape[:-2], given.forward.q.shape[-2:]
        n, e = given.v.shape[-2:]
        of_v = empty(*lead, *((e, n) if given.v_turned else (n, e)))
        of_q = empty(*lead, m, d)
        of_k = empty(*lead, *((d, n) if given.k_turned else (n, d)))
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
    """One call's `Problem`, and the memory that it points to."""

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
        d, e = f.q.shape[-1], f.v.shape[-2]
        rows_of = {"q": m, "k": n, "v_out": e, "g": m, "v": n, "g_v": e, "k_q": d, "q_k": d}
        terms_of = {"q": d, "k": d, "v_out": n, "g": e, "v": e, "g_v": m, "k_q": n, "q_k": m}
        for name, (x, bits) in given.items():
            self._require(name, x, (rows_of[name], terms_of[name]))
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

    def _require(self, name: str, x: Tensor, shape: tuple[int, int]) -> None:
        require_elements(x)
        if tuple(x.shape[-2:]) != shape or math.prod(x.shape[:-2]) != self.problem.heads:
            raise NumericsError(
                f"expected {name} of {self.problem.heads} heads of {list(shape)}, got {tuple(x.shape)}; "
                "run the instructions"
            )

    def _matrix(self, x: Tensor, bits: int, sideways: bool) -> Matrix:
        """The record of the matrix `x`, [… rows, terms]. In memory, the elements of a row must be adjacent
        or, with `sideways`, the elements of a term.

        A matrix with another layout is copied.
        """
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
                require_elements(table, torch.float32 if change.kind is Kind.PLUS else torch.bool)
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
