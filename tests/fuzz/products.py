"""Random products for the kernels, with the results of the plain-integer reference.

Sizes are at and near the edges of tiles, panels, strips and chunks. Some values are at the limit of
magnitude. Others make sums so large that a kernel, which adds up products in runs of i32 sums, must end a
run. Operands lie anywhere in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torch import Tensor

from protocol.numerics.reference import floats
from protocol.numerics.reference import rows as plain

PAIRS = ((13, 13), (20, 13), (13, 20), (20, 20))
ROWS = (
    *(1, 2, 3, 7, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 37, 96, 97, 119, 120, 121),
    *(127, 128, 129, 131, 132, 133, 239, 241, 251),
)
COLUMNS = (1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 61, 63, 64, 65, 127, 128, 129, 159, 161, 191, 257)
TERMS = (
    1,
    2,
    3,
    5,
    13,
    29,
    30,
    31,
    33,
    59,
    61,
    63,
    64,
    65,
    67,
    127,
    128,
    129,
    191,
    192,
    193,
    255,
    257,
    320,
    383,
    385,
)
LONG = (450, 509, 511, 513, 1023, 1025, 2047, 2048, 2049, 4097, 8191, 8192, 8193, 9001)
STRIPS = (120, 121, 127, 128, 129, 131, 132, 240, 251, 256, 257)
SPILL = (5787, 5788, 5789, 5792, 4092, 4093, 4094, 3342, 8191, 8192)
"""Integers with which whole chunks are filled. A kernel must end a run of i32 sums before the sum of the
squares passes a limit. For most of these integers, the sum over one, two or three chunks is just below or
just above this limit. For 8191 and 8192, the sum over one chunk is far above it.
"""


@dataclass(frozen=True)
class Product:
    """One call of `ProductKernel.contract`, and the bits of the correct result."""

    x: Tensor
    y: Tensor
    px: int
    py: int
    ex: Tensor | None
    ey: Tensor | None
    bias: Tensor | None
    right: Tensor

    def __str__(self) -> str:
        sides = (f"{tuple(t.shape)} strides {t.stride()}" for t in (self.x, self.y))
        given = ("exponents" * (e is not None) for e in (self.ex, self.ey))
        return f"{' x '.join(sides)}, {self.px} x {self.py} bits, {' '.join(given)} {'bias' * (self.bias is not None)}"


def product(r: Random, work: int) -> Product:
    """A random product. Each operand has at most `work` elements. It may have more if it has only one row for
    each entry of the batch. Operands of products of strips may also have more.
    """
    px, py = r.choice(PAIRS)
    batch = r.choice(((), (), (), (2,), (3,), (5,), (2, 3)))
    k = r.choice(LONG if r.random() < 0.15 else TERMS)
    most = max(work // (k * max(1, int(np.prod(batch)))), 1)
    m, n = (min(r.choice(sizes), r.randint(max(most // 2, 1), most)) for sizes in (ROWS, COLUMNS))
    if r.random() < 0.3:  # whole strips on one side, few rows on the other
        batch, k, few = (), r.choice(TERMS[:15]), r.choice((1, 2, 5))
        m, n = r.choice(((r.choice(STRIPS), few), (few, r.choice(STRIPS))))
    shapes = [batch, batch]
    if batch and r.random() < 0.4:  # the whole batch, or one of its axes, shares one side
        shapes[r.randrange(2)] = r.choice(((), batch[1:], (1, *batch[1:])))
    x, y = (_placed(r, _values(r, (*shape, rows, k), p)) for shape, rows, p in zip(shapes, (m, n), (px, py)))
    ex, ey = (_exponents(r, t) if r.random() < 0.3 else None for t in (x, y))
    bias = _values(r, (1, n), 13)[0] if r.random() < 0.3 else None
    return Product(x, y, px, py, ex, ey, bias, _right(x, y, px, py, ex, ey, bias))


def _values(r: Random, shape: tuple[int, ...], p: int) -> Tensor:
    """f32 rows of a random kind; a few contain a special value."""
    g = np.random.default_rng(r.getrandbits(64))
    rows, k = int(np.prod(shape[:-1])), shape[-1]
    x: np.ndarray
    kind = r.choice(("normal", "normal", "spread", "limit", "spill", "spill", "bits", "tiny", "zero"))
    if kind == "normal":
        x = g.standard_normal((rows, k))
    elif kind == "spread":
        x = g.standard_normal((rows, k)) * np.exp2(g.integers(-24, 1, (rows, k)))
    elif kind == "limit":
        x = g.choice(r.choice(([1.0], [1.0, -1.0], [-1.0, 0.0])), (rows, k)) * (2.0**p - 2.0 ** (p - 24))
    elif kind == "spill":  # chunks of one size each; the first term sets the exponent
        size = g.choice([*SPILL, 0, 1], (rows if r.random() < 0.5 else 1, k // 64 + 1)) * 2.0 ** (p - 13)
        low = g.integers(0, 2, (rows, k)) * r.choice((0, 1, 63, 64, -64)) * (p == 20)
        x = np.repeat(size, 64, axis=1)[:, :k] + low
        x = np.clip(x, -(2.0**p) + 2.0 ** (p - 24), 2.0**p - 2.0 ** (p - 24)) * g.choice(
            [1.0, -1.0], (rows, 1 if r.random() < 0.5 else k)
        )
        x[:, 0] = 2.0**p - 2.0 ** (p - 24)
    elif kind == "bits":
        x = (
            (g.integers(0, 2**32, (rows, k), dtype=np.uint32) & 0xFF7FFFFF)
            .view(np.float32)
            .astype(np.float64)
        )
    elif kind == "tiny":
        x = g.integers(-9, 10, (rows, k)) * 2.0**-149
    else:
        x = np.where(
            g.random((rows, k)) < 0.02, g.standard_normal((rows, k)), 0.0 * g.choice([1.0, -1.0], (rows, k))
        )
    if kind != "bits":
        x = x * np.exp2(g.integers(-120, 90, (rows, 1)).astype(np.float64) if r.random() < 0.4 else 0.0)
    found = x.astype(np.float32)
    for row in range(rows):
        if r.random() < 0.03:
            found[row, r.randrange(k)] = r.choice((np.inf, -np.inf, np.nan, 3e38))
    return torch.from_numpy(found.reshape(shape))


def _placed(r: Random, x: Tensor) -> Tensor:
    """The same values in a random memory layout: dense, transposed, spaced out, inside a larger tensor, or
    with permuted axes.
    """
    way = r.choice(("dense", "columns", "inside", "columns inside", "apart", "axes"))
    if way == "dense":
        return x
    if way == "columns":
        return x.mT.contiguous().mT
    if way == "apart":
        return torch.stack((torch.full_like(x, torch.nan), x), dim=-1)[..., 1]
    if way == "axes":  # batch axes inside the rows, like the heads of attention
        order = [*range(1, x.dim() - 1), 0, x.dim() - 1] if x.dim() > 2 else [0, 1]
        return x.permute(order).contiguous().permute([order.index(axis) for axis in range(x.dim())])
    matrix = x.mT if way.startswith("columns") else x
    before, after = r.randrange(3), r.randrange(5)
    around = torch.nn.functional.pad(matrix, (before, after, r.randrange(2), r.randrange(2)), value=torch.nan)
    top = r.randrange(around.shape[-2] - matrix.shape[-2] + 1)
    around[..., top : top + matrix.shape[-2], before : before + matrix.shape[-1]] = matrix
    inside = around[..., top : top + matrix.shape[-2], before : before + matrix.shape[-1]]
    return inside.mT if way.startswith("columns") else inside


def _exponents(r: Random, x: Tensor) -> Tensor:
    """Random i32 exponents for the rows of `x`: one for each row, with the shape [..., rows, 1], or a single
    one for all rows. None is smaller than the exponent that `plain.exponent` computes from a row's elements.
    If the computed one is the sentinel, the row gets the sentinel.
    """
    each = [plain.exponent(row) for row in patterns(x)]
    if r.random() < 0.5:
        e = torch.tensor(each, dtype=torch.int32).reshape(*x.shape[:-1], 1)
        return torch.where(
            (e < 100) & (torch.rand(e.shape, generator=_generator(r)) < 0.5), e + r.randrange(4), e
        )
    shape = r.choice(((1,) * x.dim(), (*x.shape[:-1], 1)))
    return torch.full(shape, max(each), dtype=torch.int32)


def _generator(r: Random) -> torch.Generator:
    return torch.Generator().manual_seed(r.getrandbits(32))


def patterns(x: Tensor) -> list[list[int]]:
    """The f32 bit patterns of each row."""
    words = x.contiguous().view(torch.int32).reshape(-1, x.shape[-1]).to(torch.int64) & 0xFFFFFFFF
    found: list[list[int]] = words.tolist()
    return found


def _right(
    x: Tensor, y: Tensor, px: int, py: int, ex: Tensor | None, ey: Tensor | None, bias: Tensor | None
) -> Tensor:
    """The bits of the correct result, i32 [..., M, N]. They come from the reference's `quantise`, then plain
    i64 sums, then the reference's `round_scaled`, and its `add` if there is a bias.
    """
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    (mx, kx), (my, ky) = (_quantised(t, p, e) for t, p, e in ((x, px, ex), (y, py, ey)))
    exact = np.matmul(mx, np.swapaxes(my, -1, -2))  # below 9001 * 2^40 < 2^54
    left, right = (np.broadcast_to(e, (*batch, *e.shape[-2:])) for e in (kx, np.swapaxes(ky, -1, -2)))
    left, right = np.broadcast_arrays(left, right)
    addends = [0] * y.shape[-2] if bias is None else patterns(bias[None])[0]
    found = []
    for place, (acc, a, b) in enumerate(
        zip(exact.ravel().tolist(), left.ravel().tolist(), right.ravel().tolist())
    ):
        bits = plain.round_scaled(acc, (a, b), px + py)
        found.append(bits if bias is None else floats.add(bits, addends[place % len(addends)]))
    return torch.tensor(found, dtype=torch.int64).to(torch.int32).reshape(exact.shape)


def _quantised(x: Tensor, p: int, e: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    rows = patterns(x)
    each = (
        [plain.exponent(row) for row in rows] if e is None else e.expand(*x.shape[:-1], 1).flatten().tolist()
    )
    whole = [[plain.quantise(value, at, p) for value in row] for row, at in zip(rows, each, strict=True)]
    return np.array(whole, np.int64).reshape(x.shape), np.array(each).reshape(*x.shape[:-1], 1)
