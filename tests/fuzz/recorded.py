"""Calls of the compiled library, recorded for native/driver.cpp: the inputs and the expected results.

Products have the operands that `Compiled` would pass, and the results of the integer reference. Fused
functions have the results of the portable variant, and random words those of `philox`; other tests compare
the portable variant and `philox` with plain code.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Sequence
from enum import IntEnum
from random import Random

import torch
from torch import Tensor

from protocol.numerics.kernels.compiled import _Side
from protocol.numerics.kernels.fused import Fused, Map, Pair
from protocol.numerics.kernels.fused_self_test import SCALARS
from protocol.numerics.philox import mask, philox
from protocol.numerics.reference import rows as plain
from protocol.numerics.reference.philox import word
from tests.fuzz.products import COLUMNS, LONG, PAIRS, ROWS, TERMS, Product, product

SHARE = 1 << 14
"""Elements that a thread takes at a time (native/fused.cpp, native/philox.cpp)."""

COUNTS = (0, 1, 2, 3, 7, 15, 17, 63, 65, 257, SHARE - 1, SHARE, SHARE + 1, 2 * SHARE + 7)
"""Numbers of elements: none, few, odd ones, and some around `SHARE`."""

Buffer = Tensor | bytes | None


class Kind(IntEnum):
    """Kinds of calls, numbered as in the driver."""

    PRODUCT, MAP, SOFTMAX, SOFTMAX_GRAD, SUM_ROWS, LAYER_NORM, LAYER_NORM_GRAD, SUM_COLUMNS = range(8)
    ADAMW, CANONICAL, PHILOX, KEEP_MASK = range(8, 12)
    ATTENTION, ATTENTION_GRAD, CONVOLUTION, STATISTICS, SUMS, NORMALISE, CHANNEL_GRAD, SHA256 = range(12, 20)
    LOG_SOFTMAX, LOG_SOFTMAX_GRAD, SGD, SCATTER_SUM = range(20, 24)
    PAIR, SELECT, LSTM_CELL, LSTM_CELL_GRAD, LANE_EMIT, LANE_ABSORB, KEEP_SOME, SHA256_SALTED = range(24, 32)


def call(kind: Kind, numbers: Sequence[int], *buffers: Buffer) -> bytes:
    """Encode one call; its results are the last buffers."""
    parts = [struct.pack("<qq", kind, len(numbers)), struct.pack(f"<{len(numbers)}q", *numbers)]
    parts.append(struct.pack("<q", len(buffers)))
    for buffer in buffers:
        data = buffer.detach().contiguous().numpy().tobytes() if isinstance(buffer, Tensor) else buffer
        parts += [struct.pack("<q", -1)] if data is None else [struct.pack("<q", len(data)), data]
    return b"".join(parts)


def products(r: Random, count: int, work: int) -> list[bytes]:
    """Random products. About a third of them are products of integers."""
    found = []
    for _ in range(count):
        given = product(r, work)
        found.append(_contracted(given))
        if r.random() < 0.5:
            found.append(_integers(r, given.x.shape[-2], given.y.shape[-2], given.x.shape[-1]))
    return found


def _contracted(p: Product) -> bytes:
    batch = torch.broadcast_shapes(p.x.shape[:-2], p.y.shape[:-2])
    sides = _Side(p.x, p.px, p.ex, batch, p.x.dtype), _Side(p.y, p.py, p.ey, batch, p.y.dtype)
    return _product(sides, batch.numel(), p.x.shape[-1], p.bias, p.right)


def _integers(r: Random, m: int, n: int, k: int) -> bytes:
    px, py = r.choice(PAIRS)
    values = [
        [r.choice((2**p, -(2**p), r.randint(-(2**p), 2**p))) for _ in range(k)] for p in [px] * m + [py] * n
    ]
    x, y = torch.tensor(values[:m], dtype=torch.int32), torch.tensor(values[m:], dtype=torch.int32)
    x, y = (t.mT.contiguous().mT if r.random() < 0.5 else t for t in (x, y))
    right = torch.tensor([plain.dot(a, b) for a in values[:m] for b in values[m:]])
    sides = _Side(x, px, None, torch.Size(), torch.int32), _Side(y, py, None, torch.Size(), torch.int32)
    return _product(sides, 1, k, None, right)


def _product(sides: tuple[_Side, _Side], batch: int, terms: int, bias: Tensor | None, right: Tensor) -> bytes:
    numbers: list[int] = []
    buffers: list[Buffer] = []
    for side in sides:
        o = side.operand
        offsets = list(side._offsets)
        last = (o.rows - 1) * o.row_stride + (terms - 1) * o.term_stride
        numbers += [o.rows, o.row_stride, o.term_stride, o.bits, o.is_integer]
        buffers.append(
            ctypes.string_at(o.data, 4 * (max(offsets) + last + 1))
        )  # up to its last element, no further
        buffers += [struct.pack(f"<{batch}q", *offsets), side._exponents]
    return call(Kind.PRODUCT, [*numbers, batch, terms], *buffers, bias, right)


def fused(r: Random, count: int) -> list[bytes]:
    """Calls of fused functions on tables of random sizes, some larger than `SHARE`. Operations on elements,
    LSTM cells and lanes have other sizes: see `elements`, `cells` and `layers.lanes`.
    """
    f = Fused("portable")
    found = []
    for _ in range(count):
        columns = r.choice((*COLUMNS, *TERMS, *LONG))
        rows = r.choice(ROWS) if columns < 300 else r.choice((1, 3, 2 * SHARE // columns + 1))
        x, g, y, v = (_numbers(r, rows, columns) for _ in range(4))
        gain, bias = (_numbers(r, 1, columns)[0] if r.random() < 0.7 else None for _ in range(2))
        mean, rstd = (_numbers(r, rows, 1) for _ in range(2))
        which = r.choice(list(Map))
        slope = g if which >= Map.GELU_ERF_GRAD else None
        found.append(call(Kind.MAP, [which, x.numel()], slope, x, f.map(which, x, slope)))
        safe = r.randrange(2)
        size = [rows, columns]
        found.append(call(Kind.SOFTMAX, [*size, safe], x, f.softmax(x, bool(safe))))
        found.append(call(Kind.SOFTMAX_GRAD, size, g, y, f.softmax_grad(g, y)))
        found.append(call(Kind.SUM_ROWS, size, x, f.sum_rows(x)))
        found.append(call(Kind.SUM_COLUMNS, size, x, None, None, None, f.sum_columns(x)))
        both = f.layer_norm_grad_gain(g, x, mean, rstd)
        found.append(call(Kind.SUM_COLUMNS, size, g, x, mean, rstd, both))
        eps = torch.tensor([1e-5])
        found.append(
            call(Kind.LAYER_NORM, size, x, gain, bias, eps, *f.layer_norm(x, gain, bias, float(eps)))
        )
        slopes = f.layer_norm_grad(g, x, mean, rstd, gain)
        found.append(call(Kind.LAYER_NORM_GRAD, size, g, x, mean, rstd, gain, slopes))
        scalars = torch.tensor(SCALARS)
        found.append(call(Kind.ADAMW, [x.numel()], x, g, y, v, scalars, *f.adamw((x, g, y, v), SCALARS)))
        found.append(call(Kind.LOG_SOFTMAX, size, x, f.log_softmax(x)))
        found.append(call(Kind.LOG_SOFTMAX_GRAD, size, g, y, f.log_softmax_grad(g, y)))
        decay, nesterov = r.choice((0.0, 0.25)), r.random() < 0.5
        rates = torch.tensor([0.125, 0.5, decay])
        for buffer in ((y,), ()):
            kept = f.sgd((x, g, *buffer), 0.125, decay, 0.5, nesterov)
            given, made = (*buffer, None)[:1], (*kept, None)[:2]
            numbers = [x.numel(), decay != 0, nesterov]
            found.append(call(Kind.SGD, numbers, x, g, *given, rates, *made))
        into = r.choice((1, 3, rows))
        index = torch.tensor([r.randrange(into) for _ in range(rows)], dtype=torch.int32)
        summed = f.scatter_sum(index, x, into)
        found.append(call(Kind.SCATTER_SUM, [*size, into], x, index, summed))
        found.append(call(Kind.CANONICAL, [x.numel()], x, f.canonical_in_place(x.clone())))
    return found


def elements(r: Random, count: int) -> list[bytes]:
    """Calls of every operation on two elements, and of `select`, for random numbers of elements. An operand
    is an array or a single element, or both operands are the same array.
    """
    f = Fused("portable")
    found = []
    for _ in range(count):
        for operation in Pair:
            n = r.choice(COUNTS)
            x, y, one = (_elements(r, count) for count in (n, n, 1))
            for a, b in ((x, y), (x, one), (one, y), (x, x)):
                numbers = [operation, n, a is one and n != 1, b is one or n == 1]
                found.append(call(Kind.PAIR, numbers, a, None if b is a else b, f.pair(operation, a, b)))
        n = r.choice(COUNTS)
        condition = _elements(r, n) < _elements(r, n)
        for a, b in itertools.product(*([_elements(r, n), _elements(r, 1)] for _ in range(2))):
            numbers = [n, a.numel() == 1, b.numel() == 1]
            found.append(call(Kind.SELECT, numbers, condition, a, b, f.select(condition, a, b)))
    return found


def cells(r: Random, count: int) -> list[bytes]:
    """A step of an LSTM and its gradient. The sizes are around 256, the elements of a block of
    native/fused_body.h, and some calls have more elements than `SHARE`.
    """
    f = Fused("portable")
    found = []
    for _ in range(count):
        size = r.choice((1, 2, 3, 15, 17, 33, 255, 256, 257, 513))
        rows = r.choice((0, 1, 2, 5, 2 * (SHARE // size) + 1))
        for kind, run, given, made in (
            (Kind.LSTM_CELL, f.lstm_cell, (4, 4, 1), (4, 1, 1)),
            (Kind.LSTM_CELL_GRAD, f.lstm_cell_grad, (1, 1, 1, 1, 4, 1, 1), (4, 1)),
        ):
            operands = [_elements(r, rows * parts * size).view(rows, parts * size) for parts in given]
            results = [torch.empty(rows, parts * size) for parts in made]
            run(operands, results)
            found.append(call(kind, [rows, size], *operands, *results))
    return found


def random_words(r: Random, count: int) -> list[bytes]:
    """`count` calls that make Philox words, twice as many that make parts of masks, and as many that make
    masks. A call makes at most a little more than two times `SHARE` words or elements. Half of the parts begin
    so far from the mask's first element that the number of the element may exceed 32 bits.
    """
    found = []
    for _ in range(count):
        key, step, stream = (r.getrandbits(32), r.getrandbits(32)), r.getrandbits(32), r.getrandbits(32)
        n, below = (
            r.choice((0, 1, 3, 5, 255, 256, 257, SHARE - 1, SHARE + 1, 2 * SHARE + 7)),
            r.getrandbits(32),
        )
        given = torch.tensor([*key, step], dtype=torch.int64).to(torch.int32)
        numbers = [*key, step, stream, n]
        found.append(call(Kind.PHILOX, numbers, philox(given[:2], given[2], stream, (n,))))
        kept = mask(given[:2], given[2], stream, (n,), below)
        start = r.randint(0, n // 4) * 4
        part = kept[start : start + r.randint(0, n - start)]
        found.append(call(Kind.KEEP_SOME, [*numbers[:4], start, len(part), below], part))
        start, n = r.getrandbits(r.choice((33, 34, 36, 50))) * 4, r.choice((1, 6, 261))
        part = torch.tensor([float(word(key, step, stream, start + i) < below) for i in range(n)])
        found.append(call(Kind.KEEP_SOME, [*numbers[:4], start, n, below], part))
        found.append(call(Kind.KEEP_MASK, [*numbers, below], kept))
    return found


def _elements(r: Random, count: int) -> Tensor:
    """f32 [count]: `_numbers`, and perhaps a zero of either sign."""
    x = _numbers(r, 1, max(count, 1))[0, :count]
    if count and r.random() < 0.5:
        x[r.randrange(count)], x[r.randrange(count)] = 0.0, -0.0
    return x


def _numbers(r: Random, rows: int, columns: int) -> Tensor:
    """Random bits, or ordinary numbers with perhaps a special value among them."""
    g = torch.Generator().manual_seed(r.getrandbits(32))
    if r.random() < 0.2:
        words = torch.randint(-(2**31), 2**31, (rows, columns), generator=g)
        return words.to(torch.int32).view(torch.float32)
    x = torch.randn(rows, columns, generator=g) * 2.0 ** r.choice((-140, -20, 0, 0, 3, 60))
    if r.random() < 0.3:
        x[r.randrange(rows), r.randrange(columns)] = r.choice((torch.inf, -torch.inf, torch.nan))
    return x
