"""Operations that capture expands into others, by family, as cases to compare with plain torch."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.unit.capture.operations import Case

aten = torch.ops.aten

X, IMAGE = [(3, 4)], [(2, 3, 5, 6)]
INTEGERS = torch.tensor([[-7, 0, 5, 12], [3, -3, 100, 5]])


def one(name: str, operation: Any, **options: Any) -> Case:
    """A case whose operation takes one f32 [3, 4]."""
    return Case(name, operation, X, **options)


def image(name: str, operation: Any, **options: Any) -> Case:
    """A case whose operation takes one f32 [2, 3, 5, 6]."""
    return Case(name, operation, IMAGE, **options)


ELEMENTARY = [
    one("tan", lambda x: torch.tan(x * 0.5)),
    one("sinh", torch.sinh),
    one("sinh near 0", lambda x: torch.sinh(x * 1e-3)),
    one("cosh", torch.cosh),
    one("asinh", torch.asinh),
    one("asinh far", lambda x: torch.asinh(x * 1e12), atol=1e-3),
    one("acosh", lambda x: torch.acosh(x + 1), positive=True),
    one("atanh", lambda x: torch.atanh(x * 0.2)),
    one("atan", torch.atan),
    one("atan far", lambda x: torch.atan(x * 100), atol=1e-4),
    Case("atan2", torch.atan2, [(3, 4), (4,)]),
    one("asin", lambda x: torch.asin(x * 0.2)),
    one("acos", lambda x: torch.acos(x * 0.2)),
    one("erfc", torch.erfc),
    one("sinc", torch.sinc),
    one("logit", lambda x: torch.logit(x.sigmoid(), 1e-3)),
    Case("logaddexp", torch.logaddexp, [(3, 4), (4,)]),
    one("exp2", torch.exp2),
    one("log2", torch.log2, positive=True),
    one("log10", torch.log10, positive=True),
    Case("pow tensor", torch.pow, [(3, 4), (4,)], positive=True),
    one("pow by a number", lambda x: x**0.3, positive=True),
    one("pow by much", lambda x: x**20, positive=True, rtol=1e-4, atol=1e-3),
    Case(
        "pow of less than 0",
        lambda x: torch.pow(x, torch.tensor([2.0, 3.0, -1.0, 0.0], dtype=x.dtype)),
        X,
        atol=2e-4,
    ),
    one("pow of a number", lambda x: 2.5**x),
]
POINTWISE = [
    one("trunc", lambda x: torch.trunc(x * 3)),
    Case("sign of integers", torch.sign, [INTEGERS]),
    one("frac", lambda x: torch.frac(x * 3)),
    one("remainder", lambda x: torch.remainder(x * 3, 1.7)),
    one("remainder below 0", lambda x: torch.remainder(x * 3, -0.7)),
    one("floor divide", lambda x: torch.div(x * 3, 0.7, rounding_mode="floor")),
    one("div trunc", lambda x: torch.div(x * 3, 0.7, rounding_mode="trunc")),
    one("fmod", lambda x: torch.fmod(x * 3, 1.7)),
    Case("fmod tensor", lambda x, y: torch.fmod(x * 3, y), [(3, 4), (4,)]),
    one("nan_to_num", lambda x: torch.nan_to_num(torch.where(x > 0.5, float("nan"), x), nan=3.0)),
    one("softshrink", F.softshrink),
    one("hardshrink", F.hardshrink),
    Case("prelu", F.prelu, [(2, 3, 4), (3,)]),
    Case("prelu of one", F.prelu, [(2, 3), (1,)]),
    Case("hypot", torch.hypot, [(3, 4), (4,)]),
    Case("copysign", torch.copysign, [(3, 4), (4,)]),
    Case("heaviside", lambda x: torch.heaviside(x.detach(), x.detach() * 0 + 1) * x, [(3, 4)]),
    Case("soft margin", lambda x: F.soft_margin_loss(x, x.detach().sign()), X),
]
REDUCTIONS = [
    one("prod", torch.prod),
    one("prod axis", lambda x: x.prod(1)),
    one("prod kept", lambda x: x.prod(0, keepdim=True)),
    Case("prod integers", lambda x: x.prod(1), [torch.tensor([[3, -2, 5], [7, 1, 2]])]),
    one("cumprod", lambda x: x.cumprod(1)),
    one("cumsum to integers", lambda x: (x.detach() * 3).cumsum(1, dtype=torch.int32)),
    one("cummax", lambda x: x.cummax(1).values),
    one("cummax places", lambda x: x.cummax(1).indices),
    one("cummin", lambda x: x.cummin(0).values),
    one("logcumsumexp", lambda x: x.logcumsumexp(1)),
    one("count_nonzero", lambda x: (x > 0).count_nonzero()),
    one("trace", torch.trace),
    one("norm", lambda x: torch.norm(x)),
    one("norm axis", lambda x: torch.norm(x, 2, 1)),
    one("norm 3", lambda x: torch.linalg.vector_norm(x, 3, 1)),
    one("norm 0", lambda x: torch.linalg.vector_norm(x, 0, 1)),
    one("norm 1", lambda x: torch.norm(x, 1, 1)),
    *(
        one(f"renorm {order}", lambda x, order=order: torch.renorm(x.detach(), order, 0, 1.0))
        for order in (1, 2, 3, math.inf)
    ),
    one("std_mean", lambda x: torch.stack(torch.std_mean(x, 1))),
    one("var dim", lambda x: torch.var(x, 1, unbiased=False)),
    Case("weight norm", lambda v, g: torch._weight_norm(v, g, 0), [(3, 4), (3, 1)]),
    one("aminmax", lambda x: torch.stack(torch.aminmax(x, dim=1))),
]
ORDERING = [
    one("sort", lambda x: x.sort(1).values),
    one("sort first axis", lambda x: x.sort(0, descending=True).values),
    one("argsort", lambda x: x.argsort(1)),
    Case("sort integers", lambda x: torch.stack(torch.sort(x, dim=1, stable=True)), [INTEGERS]),
    one("topk", lambda x: x.topk(2, 1).values),
    one("topk places", lambda x: x.topk(2, 1).indices),
    one("topk smallest", lambda x: x.topk(2, 0, largest=False).values),
    Case("topk as an index", lambda x, y: y[x.topk(2, 1).indices], [(3, 4), (4,)]),
    Case("topk as two indices", lambda x: x.gather(1, x.topk(2, 1).indices), [(3, 4)]),
    Case("argsort of argsort", lambda x: x.gather(1, x.argsort(1).argsort(1)), [(3, 4)]),
    one("kthvalue", lambda x: x.kthvalue(2, 1).values),
    one("median", torch.median),
    one("median axis", lambda x: x.median(1).values),
    one("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5]))),
    one("searchsorted", lambda x: torch.searchsorted(x.sort(1).values, x, right=True)),
    Case("isin", lambda x: torch.isin(x, torch.tensor([3, 5])), [INTEGERS]),
]
MAKING = [
    Case("block_diag", lambda x, y: torch.block_diag(x, y), [(3, 4), (2, 1)]),
    Case("eye", lambda x: x @ torch.eye(4, dtype=x.dtype), X, rtol=1e-3, atol=1e-3),
    Case("triu_indices", lambda x: x @ x.T, X, rtol=1e-3, atol=1e-2),
    Case("eye wide", lambda x: x * torch.eye(3, 4), X),
    one("linspace", lambda x: x * torch.linspace(-1, 2, 4)),
]
TOGETHER = [(2, 5, 6, 3)]
LAYOUTS = [
    Case("diagonal", torch.diag, [(4,)]),
    one("diagonals", lambda x: torch.diag_embed(x, 1, 0, 2)),
    Case("pixel shuffle", lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 2)]),
    Case("pixel unshuffle", lambda x: F.pixel_unshuffle(x, 3), [(2, 2, 3, 6)]),
    Case("channel shuffle", lambda x: F.channel_shuffle(x, 3), [(2, 6, 2, 3)]),
    Case("mean of channels together", lambda x: F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1), TOGETHER),
    Case("strides that swap axes", lambda x: (x * 2).as_strided((4, 3), (1, 4)), X),
    Case("strides of another shape", lambda x: (x * 2).T.as_strided((2, 1, 6), (6, 7, 1)), X),
]
PADDING = [
    Case("reflect 1d", lambda x: F.pad(x, (2, 1), mode="reflect"), [(2, 3, 4)]),
    image("reflect 2d", lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect")),
    Case("reflect 3d", lambda x: F.pad(x, (1, 1, 0, 1, 1, 0), mode="reflect"), [(1, 2, 3, 3, 2)]),
    Case("replicate 1d", lambda x: F.pad(x, (2, 5), mode="replicate"), [(2, 3, 4)]),
    image("replicate 2d", lambda x: F.pad(x, (2, 1, 0, 7), mode="replicate")),
    Case("replicate 3d", lambda x: F.pad(x, (1, 1, 0, 2, 1, 0), mode="replicate"), [(1, 2, 3, 3, 2)]),
    image("circular", lambda x: F.pad(x, (2, 1, 0, 3), mode="circular")),
]
RESIZING = [
    Case("linear", lambda x: F.interpolate(x, 7, mode="linear"), [(2, 3, 4)]),
    image("bilinear", lambda x: F.interpolate(x, (7, 4), mode="bilinear")),
    image("bilinear corners", lambda x: F.interpolate(x, (7, 4), mode="bilinear", align_corners=True)),
    image("bilinear scale", lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear")),
    image("bicubic", lambda x: F.interpolate(x, (7, 4), mode="bicubic")),
    Case("trilinear", lambda x: F.interpolate(x, (4, 2, 5), mode="trilinear"), [(1, 2, 3, 3, 2)]),
    Case("nearest 1d", lambda x: F.interpolate(x, 7, mode="nearest"), [(2, 3, 4)]),
    image("nearest uneven", lambda x: F.interpolate(x, (7, 4), mode="nearest")),
    Case("nearest 3d", lambda x: F.interpolate(x, (4, 2, 5), mode="nearest"), [(1, 2, 3, 3, 2)]),
    Case("pixel shuffle", lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 2)]),
    Case("pixel unshuffle", lambda x: F.pixel_unshuffle(x, 2), [(2, 2, 4, 6)]),
    *(
        image(f"nearest by {factor}", lambda x, factor=factor: F.interpolate(x, scale_factor=factor))
        for factor in (3.2, (2.0, 3.1), 3)
    ),
    Case("nearest to whole blocks", lambda x: F.interpolate(x, scale_factor=3.2), [(1, 2, 4, 4)]),
    *(
        Case(
            f"grid sample on the border {padding} {corners}",
            lambda x, at, padding=padding, corners=corners: F.grid_sample(
                x, at, "bilinear", padding, corners
            ),
            [
                (1, 2, 4, 4),
                torch.tensor([-1.0, 1.0, -0.75, 0.75, 0.25, 3.0]).view(1, 1, 6, 1).repeat(1, 6, 1, 2),
            ],
            atol=2e-4,
        )
        for padding in ("border", "reflection", "zeros")
        for corners in (True, False)
    ),
    image("nearest exact", lambda x: F.interpolate(x, (7, 4), mode="nearest-exact")),
    Case(
        "grid sample",
        lambda x, at: F.grid_sample(x, at.tanh(), align_corners=False),
        [(2, 3, 5, 6), (2, 3, 4, 2)],
        atol=2e-4,
    ),
    *(
        Case(
            f"grid sample reflected {mode} {corners}",
            lambda x, at, mode=mode, corners=corners: F.grid_sample(x, at * 1.7, mode, "reflection", corners),
            [(2, 3, 5, 6), (2, 3, 4, 2)],
            atol=2e-4,
        )
        for mode in ("bilinear", "nearest")
        for corners in (True, False)
    ),
    *(
        Case(
            f"affine grid {len(size)} {corners}",
            lambda x, size=size, corners=corners: F.affine_grid(x, size, corners),
            [(2, len(size) - 2, len(size) - 1)],
            rtol=1e-3,
            atol=1e-2,
        )
        for size in ([2, 3, 5, 6], [2, 1, 3, 4, 2])
        for corners in (True, False)
    ),
]
VOLUME = (1, 2, 4, 5, 3)
VOLUMES = [
    Case(
        "conv3d",
        lambda x, w, b: F.conv3d(x, w, b, 2, 1),
        [VOLUME, (4, 2, 3, 3, 2), (4,)],
        rtol=1e-3,
        atol=1e-2,
    ),
    Case(
        "conv3d groups",
        lambda x, w: F.conv3d(x, w, None, 1, (0, 1, 0), (2, 1, 1), 2),
        [VOLUME, (4, 1, 2, 3, 2)],
        rtol=1e-3,
        atol=1e-2,
    ),
    Case(
        "conv3d transposed",
        lambda x, w, b: F.conv_transpose3d(x, w, b, 2, 1, 1),
        [(1, 2, 2, 3, 2), (2, 3, 3, 2, 2), (3,)],
        rtol=1e-3,
        atol=1e-2,
    ),
    Case("max pool 3d", lambda x: F.max_pool3d(x, 2, 1, 1), [VOLUME]),
    Case("max pool 3d dilated", lambda x: F.max_pool3d(x, 2, 2, dilation=(2, 1, 1)), [VOLUME]),
    Case("mean pool 3d", lambda x: F.avg_pool3d(x, 2, 1, 1), [VOLUME]),
    Case("mean pool 3d inside", lambda x: F.avg_pool3d(x, 2, 2, 1, True, False), [VOLUME]),
    Case("adaptive 3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), [VOLUME]),
]
WINDOWS = [
    image("mean pool ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, True)),
    image("mean pool ceil inside", lambda x: F.avg_pool2d(x, 2, 2, 0, True, False)),
    image("adaptive mean uneven", lambda x: F.adaptive_avg_pool2d(x, (3, 4))),
    image("adaptive mean larger", lambda x: F.adaptive_avg_pool2d(x, (7, 4))),
    image("unfold", lambda x: F.unfold(x, (2, 3), (2, 1), 1, 2)),
    Case("fold", lambda x: F.fold(x, (5, 6), (2, 3), 1, 1, 2), [(2, 18, 9)]),
    Case("adaptive 1d of columns", lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1), [(2, 5, 3)]),
    image("adaptive max", lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    Case("adaptive max 1d", lambda x: F.adaptive_max_pool1d(x, 3), [(2, 3, 7)]),
]


def both_halves(x: Tensor) -> Tensor:
    """The low ten bits of integers, and the remaining bits. Each part fits into f32."""
    return torch.stack([x & 1023, x >> 10])


def inverse(order: Tensor) -> Tensor:
    """The inverse of a permutation, computed as in mixture-of-experts code."""
    found = torch.empty_like(order)
    found[order] = torch.arange(len(order))
    return found


INDEX = torch.tensor([[0, 2, 2], [1, 0, 1]])
LARGE = torch.tensor([[16777217, -16777219, 5], [16777219, -3, 700_000_001]])
MASKS = torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, False, True]])


def triangle(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`2x` with `v` written on and below the diagonal."""
    y, (rows, columns) = x * 2, torch.tril_indices(3, 3)
    y[:, rows, columns] = v
    return y


def alternate(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`2x`, with `v` written into columns 1, 3, ... but not into the last two columns. Then `v.sum()` is
    written into rows -4 and -1.
    """
    y = x * 2
    y[:, 1:-2:2] = v
    y[-4::3] = v.sum()
    return y


def cross(x: torch.Tensor, v: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """`2x` with `v` at rows `at` and columns -1 and 0."""
    y = x * 2
    y[at[:, None], torch.tensor([-1, 0])] = v
    return y


def put_columns(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A copy of `x` with `v` in columns 0 and 2."""
    y = x.clone()
    y[:, [0, 2]] = v
    return y


def put_apart(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`x`, with `v` written in place where the indices of the first and last axes are (2, 1) or (0, 2)."""
    x[[2, 0], :, :, [1, 2]] = v
    return x


def put_between(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`x`, with `v` written in place where the indices of the second and third axes are (2, 1) or (0, 3)."""
    x[:, [2, 0], [1, 3]] = v
    return x


SCATTERING = [
    Case("put in a triangle", triangle, [(2, 3, 4), (2, 6)]),
    Case("put one value in a triangle", triangle, [(2, 3, 4), (1,)]),
    Case("put in every second column", alternate, [(5, 7), (5, 2)]),
    Case("put at separated axes", lambda x, v: put_apart(x * 2, v), [(3, 4, 2, 3), (2, 4, 2)]),
    Case("put rows and slices", lambda x, v: put_between(x * 2, v), [(2, 3, 4, 3), (2, 1, 3)]),
    Case("put integers in columns", lambda x, v: put_columns(x, v), [INTEGERS, INTEGERS[:, :2] * 7654321]),
    Case("put in columns of a mask", lambda x: put_columns(x > 4, torch.tensor(True)), [INTEGERS]),
    Case("put at rows and columns", cross, [(3, 4), (2, 2), torch.tensor([2, 0])]),
    *(
        Case(
            f"scatter reduce {how} {own}",
            lambda x, y, at, how=how, own=own: x.scatter_reduce(0, at, y, how, include_self=own),
            [(3, 4), (2, 3), INDEX],
        )
        for how in ("sum", "mean", "amax", "amin", "prod")
        for own in (True, False)
    ),
    *(
        Case(
            f"scatter reduce {how} of integers {own}",
            lambda x, y, at, how=how, own=own: both_halves(x.scatter_reduce(0, at, y, how, include_self=own)),
            [LARGE - 7, LARGE - 3, torch.tensor([[0, 1, 0], [0, 0, 1]])],
        )
        for how in ("sum", "mean", "amax", "amin")
        for own in (True, False)
    ),
    Case("masked scatter", lambda x, y, m: x.masked_scatter(m, y), [(3, 4), (2, 5), MASKS]),
    one("index fill", lambda x: x.index_fill(1, torch.tensor([0, 2]), 3.0)),
    one("rows replaced", lambda x: (x * 2).index_put((x[:, 0].argsort(),), x + 1)),
    one("some rows replaced", lambda x: (x * 2).index_put((x[:, 0].topk(2).indices,), x[:2] + 1)),
    Case("inverse of an order", lambda x: inverse(x.flatten().argsort(stable=True)), [INTEGERS]),
    Case("histc", lambda x: torch.histc(x, 4, -1, 2), [torch.linspace(-2, 3, 20)]),
    Case("histc open", lambda x: torch.histc(x, 4), [torch.linspace(-2, 3, 20)]),
]
TRIANGULAR: dict[str, tuple[dict[str, bool], list[tuple[int, ...]]]] = {
    "lower": ({"upper": False}, [(2, 3, 3), (3, 2)]),
    "upper": ({"upper": True}, [(3, 3), (2, 3, 2)]),
    "lower of ones": ({"upper": False, "unitriangular": True}, [(3, 3), (3, 2)]),
    "upper on the right": ({"upper": True, "left": False}, [(3, 3), (2, 3)]),
}
PRODUCTS = [
    *(
        Case(
            f"triangular {name}",
            lambda x, y, how=how: torch.linalg.solve_triangular(x, y, **how),
            shapes,
            positive=True,
            rtol=1e-3,
            atol=1e-3,
        )
        for name, (how, shapes) in TRIANGULAR.items()
    ),
    Case("vdot", torch.vdot, [(4,), (4,)], rtol=1e-3, atol=1e-2),
    Case("cross", torch.linalg.cross, [(5, 3), (1, 3)]),
    Case("cross along an axis", lambda x, y: torch.linalg.cross(x, y, dim=0), [(3, 4), (3, 4)]),
    Case("pdist", torch.pdist, [(4, 3)]),
    Case("cdist of many", torch.cdist, [(30, 3), (4, 3)], rtol=1e-3, atol=1e-2),
    Case("addr", torch.addr, [(3, 4), (3,), (4,)], rtol=1e-3, atol=1e-2),
    *(
        Case(f"cdist {p}", lambda x, y, p=p: torch.cdist(x, y, p), [(3, 4), (5, 4)])
        for p in (1.0, 2.0, math.inf)
    ),
]
EXTREMES = [
    Case("argmax integers", lambda x: x.argmax(1), [INTEGERS * 7654321]),
    Case("argmin integers", lambda x: x.argmin(0), [INTEGERS * -7654321]),
    Case("max integers", lambda x: torch.stack(x.max(1)), [INTEGERS * 7654321]),
    Case("amin integers", lambda x: x.amin(1), [INTEGERS * 7654321]),
    Case("argmax bool", lambda x: (x > 4).int().argmax(1), [INTEGERS]),
]
GAMMA = [
    one("lgamma", lambda x: torch.lgamma(x), positive=True),
    one("lgamma near 0", lambda x: torch.lgamma(x * 1e-3), positive=True, atol=1e-2),
    one("lgamma far", lambda x: torch.lgamma(x * 1e4), positive=True, atol=1e-2),
    Case("lgamma below 0", torch.lgamma, [torch.tensor([-0.3, -1.6, -2.45, -7.8])], atol=1e-4),
    one("digamma", torch.digamma, positive=True),
    Case("digamma below 0", lambda x: torch.digamma(x.detach()) * x, [torch.tensor([-0.3, -1.6, -7.8])]),
    one("digamma of more", lambda x: torch.digamma(x + 6), positive=True),
]
QUANTISATION = [
    one("fake quantise", lambda x: torch.fake_quantize_per_tensor_affine(x.float(), 0.25, 3, -4, 7)),
    Case(
        "fake quantise channels",
        lambda x, scale, zero: torch.fake_quantize_per_channel_affine(
            x.float(), scale.detach().float(), zero, 1, -4, 7
        ),
        [(3, 4), torch.tensor([0.25, 0.5, 0.125, 1.0]), torch.tensor([0, 3, -1, 0], dtype=torch.int32)],
    ),
    Case(
        "fake quantise by tensors",
        lambda x, scale, zero: torch.fake_quantize_per_tensor_affine(
            x.float(), scale.detach().float(), zero, -4, 7
        ),
        [(3, 4), torch.tensor(0.25), torch.tensor(3, dtype=torch.int32)],
    ),
]
WORDS, OFFSETS = torch.tensor([1, 4, 4, 0, 2, 3, 1]), torch.tensor([0, 3, 3, 5])
BAGS = [
    *(
        Case(
            f"frozen bags {mode} {padding}",
            lambda x, i, at, mode=mode, padding=padding: F.embedding_bag(
                i, x.detach(), at, mode=mode, padding_idx=padding
            ),
            [(5, 3), WORDS, OFFSETS],
        )
        for mode in ("sum", "mean")
        for padding in (None, 4)
    ),
    Case("bags", lambda x, i: F.embedding_bag(i.view(1, 7), x, mode="sum"), [(5, 3), WORDS]),
    *(
        Case(
            f"bags by offsets {mode} {padding}",
            lambda x, i, at, mode=mode, padding=padding: F.embedding_bag(
                i, x, at, mode=mode, padding_idx=padding
            ),
            [(5, 3), WORDS, OFFSETS],
        )
        for mode in ("sum", "mean")
        for padding in (None, 4)
    ),
    Case(
        "bags weighted",
        lambda x, w, i, at: F.embedding_bag(
            i, x, at, mode="sum", per_sample_weights=w, include_last_offset=True
        ),
        [(5, 3), (7,), WORDS, torch.tensor([0, 3, 3, 7])],
    ),
]
STRIDES = [
    Case("fill diagonal", lambda x: (x * 2).fill_diagonal_(3.0), [(4, 4)]),
    Case("fill diagonal with infinity", lambda x: (x * 2).fill_diagonal_(-math.inf).softmax(1), [(3, 5)]),
    Case(
        "write as strided",
        lambda x, y: torch.as_strided_scatter(x * 2, y, (2, 3), (5, 1), 2),
        [(3, 4), (2, 3)],
    ),
    one("as strided", lambda x: (x * 2).as_strided((3, 2, 2), (4, 1, 1))),
    one("as strided, some twice", lambda x: (x * 2).as_strided((2, 4), (3, 1))),
    one("as strided with gaps", lambda x: (x * 2).as_strided((3, 3), (4, 1))),
]
CASES = [
    *GAMMA,
    *QUANTISATION,
    *BAGS,
    *STRIDES,
    *VOLUMES,
    *WINDOWS,
    *SCATTERING,
    *PRODUCTS,
    *EXTREMES,
    *ELEMENTARY,
    *POINTWISE,
    *REDUCTIONS,
    *ORDERING,
    *MAKING,
    *LAYOUTS,
    *PADDING,
    *RESIZING,
]
