"""Calls of attention, convolutions, batch norm, lanes and the hasher, recorded for native/driver.cpp (as in
`recorded`).

Each kind of call gets its expected results in a different way. For attention, the library's functions are
applied one after another to whole tables. For a convolution, there is one matrix product for each element of
the kernel. For lanes, the portable variant is used, and for the hasher hashlib. For batch norm, the bodies of
the library's functions are evaluated with torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import math
import struct
from random import Random

import torch
from torch import Tensor

from protocol.commitments.native import row_hasher
from protocol.numerics.kernels.attention import Backward, Change, ChangeRecord, Matrix, _Call
from protocol.numerics.kernels.attention import Problem as Attention
from protocol.numerics.kernels.attention_shape_classes import ROWS
from protocol.numerics.kernels.attention_shape_classes import Kind as ChangeKind
from protocol.numerics.kernels.convolution import problem_of
from protocol.numerics.kernels.convolution_self_test import operands, plain
from protocol.numerics.kernels.fused import MOST_LANES, SHARED, Fused
from protocol.program.library import CATALOGUE
from protocol.program.library.evaluate import evaluate
from protocol.program.library.lanes import largest_below
from tests.fuzz.recorded import SHARE, Buffer, Kind, call
from tests.gpu.lane_calls import changes, message
from tests.unit.library.test_attention import Plain, case, causal
from tests.unit.numerics.test_convolution_shape_classes import random_call

QUERIES = (1, 2, 7, 12, 13, 119, 120, 121, 130, 241)
"""Numbers of queries at the edges of panels and of blocks of 120."""
KEYS = (1, 2, 3, 8, 15, 16, 17, 33, 119, 120, 121, 131, 250)
INNER = (1, 2, 3, 5, 8, 16, 31, 33)
WHOLE = 1 << 22
CHANNELS = (
    (1, 1, 1),
    (1, 2, 3),
    (3, 5, 7),
    (2, 3, 33),
    (4, 70, 16),
    (2, 1, 16_385),
    (1, 3, 9_001),
    (5, 9, 1),
)
"""(samples, channels, size) of a call. Some of the numbers are 1, some are odd, and some calls have more than
the 2^14 elements that a thread takes at a time.
"""
WIDTHS = (0, 1, 3, 54, 55, 56, 62, 63, 64, 65, 118, 119, 120, 126, 127, 128, 129, 1023, 1024)
"""Bytes of a row; many are near a length at which padding needs another block."""
SALTED_WIDTHS = (0, 32, 64, 96, 1024)
"""Bytes of a row under a salt: a multiple of 32."""


def convolutions(r: Random, count: int, *, alone: bool = False) -> list[bytes]:
    """Convolutions of all three kinds with strides, padding, dilation and groups.

    With `alone`, each convolution has one group and one sample, so that the end of its result is the end of
    the buffer.
    """
    found: list[bytes] = []
    while len(found) < count:
        given = random_call(r)
        if alone and given.samples * given.groups > 1:
            continue
        left, image, bias = operands(given)
        problem, _kept = problem_of(given, left, image, bias)
        names = [
            field[0] for field in problem._fields_[4:23]
        ]  # after the four pointers, before variant and threads
        numbers = [int(getattr(problem, name)) for name in names]
        found.append(call(Kind.CONVOLUTION, numbers, left, image, bias, plain(given, left, image, bias)))
    return found


def attentions(r: Random, count: int) -> list[bytes]:
    """Forward and backward passes of attention. Some have masks, in every form; some have dropout; some have
    transposed operands. Each backward pass is called twice: whole, and in blocks.
    """
    found = []
    for _ in range(count):
        m = r.choice(QUERIES)
        n = m if r.random() < 0.4 else r.choice(KEYS)
        shape = (r.choice((1, 2)), r.choice((1, 2, 3)), m, n, r.choice(INNER), r.choice(INNER))
        changes, back = _changes(r, m, n)
        given = case(shape, changes, back, drop=r.random() < 0.5)
        if r.random() < 0.2:
            given.g[..., 0, 0] = r.choice((math.inf, math.nan, 1e38))
        forward = _Call(given.forward)  # holds the memory that its problem points to
        found.append(
            _attention(Kind.ATTENTION, forward.problem, given, (Plain().forward(given.forward),), WHOLE)
        )
        both = _Call(given.forward, given)
        for whole in (WHOLE, 1):
            found.append(_attention(Kind.ATTENTION_GRAD, both.problem, given, Plain().backward(given), whole))
    return found


def _changes(r: Random, m: int, n: int) -> tuple[list[Change], list[Change]]:
    scale, hidden = Change(r.choice((ChangeKind.TIMES, ChangeKind.OVER)), 0.35), causal(m, n)
    slopes = torch.randn(m, n, generator=torch.Generator().manual_seed(r.getrandbits(30)))
    seen = r.randint(1, n)
    cut = torch.where(torch.arange(n) < seen, slopes, -math.inf)
    cut[r.randrange(m), r.randrange(seen)] = r.choice((math.nan, math.inf, 0.0))
    prefix = (torch.arange(n) < -(-seen // ROWS) * ROWS).expand(m, n)
    forms: tuple[tuple[list[Change], list[Change]], ...] = (
        ([], []),
        ([scale], [scale]),
        (
            [scale, Change(ChangeKind.FILL_TRUE, -math.inf, hidden)],
            [Change(ChangeKind.FILL_TRUE, 0.0, hidden), scale],
        ),
        (
            [scale, Change(ChangeKind.FILL_FALSE, -1e9, ~hidden)],
            [Change(ChangeKind.FILL_FALSE, 0.0, ~hidden)],
        ),
        ([Change(ChangeKind.PLUS, table=torch.where(hidden, -math.inf, slopes)), scale], [scale]),
        ([scale, Change(ChangeKind.PLUS, table=torch.where(hidden, -math.inf, 0.0))], [scale]),
        ([Change(ChangeKind.PLUS, table=cut)], [Change(ChangeKind.FILL_TRUE, 0.0, prefix)]),
    )
    return r.choice(forms)


def _attention(kind: Kind, p: Attention, given: Backward, results: tuple[Tensor, ...], whole: int) -> bytes:
    sizes = (p.heads, p.queries, p.keys, p.inner, p.width)
    switches = (p.safe, p.dropout, p.key0, p.key1, p.step, p.stream, p.below, p.v_turned, p.k_turned, whole)
    bits = (p.p_out.bits, p.p_v.bits, p.s_q.bits, p.s_k.bits)
    numbers = [*sizes, *switches, *bits, p.change_count, p.back_count]
    buffers: list[Buffer] = []
    _, m, n, d, e = sizes
    for name, rows, terms in (
        *(("q", m, d), ("k", n, d), ("v_out", e, n), ("g", m, e)),
        *(("v", n, e), ("g_v", e, m), ("k_q", d, n), ("q_k", d, m)),
    ):
        matrix: Matrix = getattr(p, name)
        numbers += [matrix.row_stride, matrix.term_stride, matrix.bits]
        reach = (rows - 1) * matrix.row_stride + (terms - 1) * matrix.term_stride
        buffers += _placed(matrix.data, matrix.offsets, sizes[0], reach, 4)
    values = [p.kept]
    records = [(p.changes, k, change) for k, change in enumerate(given.forward.changes)]
    if kind is Kind.ATTENTION_GRAD:
        records += [(p.back_changes, k, change) for k, change in enumerate(given.changes)]
    for at, k, change in records:
        record = ctypes.cast(at, ctypes.POINTER(ChangeRecord))[k]
        values.append(record.value)
        numbers += [record.kind, record.row_stride, record.column_stride]
        reach = (m - 1) * record.row_stride + (n - 1) * record.column_stride
        size = 4 if change.kind is ChangeKind.PLUS else 1
        buffers += _placed(record.data, record.offsets, sizes[0], reach, size)
    return call(kind, numbers, struct.pack(f"<{len(values)}f", *values), *buffers, *results)


def _placed(data: int | None, offsets: int | None, heads: int, reach: int, size: int) -> list[Buffer]:
    """Two buffers: the memory at `data`, up to the last element that is used, and the offset of each head in
    this memory. Both are None if `data` or `offsets` is missing.
    """
    if not data or not offsets:
        return [None, None]
    starts = struct.unpack(f"<{heads}q", ctypes.string_at(offsets, 8 * heads))
    return [ctypes.string_at(data, size * (max(starts) + reach + 1)), struct.pack(f"<{heads}q", *starts)]


def channels(r: Random, count: int) -> list[bytes]:
    """The four functions of batch norm, with and without gain and bias."""
    found = []
    for _ in range(count):
        shape = r.choice(CHANNELS)
        drawn = torch.Generator().manual_seed(r.getrandbits(30))
        g, x = (torch.randn(shape, generator=drawn) * 2.0 ** r.choice((-70, 0, 0, 60)) for _ in range(2))
        if r.random() < 0.3:
            x.view(-1)[-1] = r.choice((math.inf, math.nan, 1e-42))
        mean, rstd, gain, bias, total, along = (torch.randn(shape[1], generator=drawn) for _ in range(6))
        eps = torch.tensor([1e-5])
        statistics = evaluate(CATALOGUE["batch_statistics"]._body, [x], {"eps": 1e-5})
        sums = evaluate(CATALOGUE["batch_norm_sums"]._body, [g, x, mean, rstd], {})
        none = [None] * 6
        found.append(call(Kind.STATISTICS, shape, eps, None, x, *none, *statistics))
        found.append(call(Kind.SUMS, shape, eps, g, x, mean, rstd, *none[2:], *sums))
        for affine in ((), (gain,), (gain, bias)):
            (y,) = evaluate(CATALOGUE["batch_normalise"]._body, [x, mean, rstd, *affine], {})
            given = (*affine, None, None)[:2]
            found.append(call(Kind.NORMALISE, shape, eps, None, x, mean, rstd, *given, None, None, y))
        for slope in ((), (gain,)):
            (y,) = evaluate(CATALOGUE["batch_norm_grad"]._body, [g, x, mean, rstd, total, along, *slope], {})
            given = (g, x, mean, rstd, slope[0] if slope else None, None, total, along)
            found.append(call(Kind.CHANNEL_GRAD, shape, eps, *given, y))
    return found


def lanes(r: Random, count: int, block: int) -> list[bytes]:
    """Messages of lanes: as many calls of `emit` as of `absorb`, with groups of every kind of number, places
    beyond their blocks, and exponents at and beyond their limits. Some calls have more than the 2^14 elements
    that a thread takes at a time.
    """
    f, size = Fused("portable"), SHARED * block
    no_index = [None] if block == 1 else []
    found = []
    for _ in range(count):
        groups = r.choice((1, 2, 3, SHARE // size + 1, 2 * (SHARE // size) + 7))
        most = r.choice((-94, 4, 128))
        kinds = [x.view(-1, size) for x in changes(block, most)]
        chosen = [r.randrange(len(kinds[0])) for _ in range(groups)]
        base, local, feedback = (x[chosen].view(-1) for x in kinds)
        scalars = r.choice((0.0, 0.9, 1.0)), largest_below(most)
        made = (*no_index, *f.emit((base, local, feedback), block, *scalars))
        given = torch.tensor(scalars), base, local, feedback
        found.append(call(Kind.LANE_EMIT, [groups, block], *given, *made))
        drawn = torch.Generator().manual_seed(r.getrandbits(30))
        sent = 1 + r.choice((1, 2, 3, MOST_LANES))
        messages = [message(drawn, groups * SHARED, block) for _ in range(sent)]
        rates = 0.7, r.choice((1.0, 3.0, math.inf)), r.choice((0.0, 1.0, -3.0, math.nan))
        moved = f.absorb((base, feedback), messages, (block, most), rates)
        buffers = [part for m in messages for part in (*no_index, *m)]
        numbers = [groups, block, len(messages) - 1, most]
        found.append(call(Kind.LANE_ABSORB, numbers, torch.tensor(rates), base, feedback, *buffers, *moved))
    return found


def hashes(r: Random) -> list[bytes]:
    """Calls for each of `WIDTHS` and `SALTED_WIDTHS` with several numbers of rows, including 0. The list is
    empty if the processor has no instructions for SHA-256.
    """
    if row_hasher() is None:
        return []
    found = []
    for width in WIDTHS:
        for count in (0, 1, 3, 4, 5, 9):
            prefix, data = r.getrandbits(8), r.randbytes(count * width)
            rows = (data[k * width : (k + 1) * width] for k in range(count))
            right = b"".join(hashlib.sha256(bytes([prefix]) + row).digest() for row in rows)
            found.append(call(Kind.SHA256, [prefix, count, width], data, right))
    for width, gap, count in itertools.product(SALTED_WIDTHS, (0, 1, 64), (0, 1, 3, 4, 5, 9)):
        salt, stride = r.randbytes(32), width + gap
        data = r.randbytes(max(0, count * stride - gap))
        rows = (data[k * stride : k * stride + width] for k in range(count))
        right = b"".join(_salted(salt, row) for row in rows)
        found.append(call(Kind.SHA256_SALTED, [count, width, stride], salt, data, right))
    return found


def _salted(salt: bytes, row: bytes) -> bytes:
    pieces = [row[i : i + 32] for i in range(0, len(row), 32)]
    return hashlib.sha256(salt + salt.join([*pieces, len(row).to_bytes(32, "big")])).digest()
