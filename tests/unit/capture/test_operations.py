"""Supported operations, forward and backward, against plain torch in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.unit.capture.operations import Case, by_capture, by_torch

X = [(3, 4)]
PAIR = [(3, 4), (3, 4)]
INTEGERS = torch.tensor([[-7, 0, 5, 12], [3, -3, 100, 2**31 - 1]])
MASK = torch.tensor([[True, False, True, False], [False, False, True, True], [True, True, True, True]])
LABELS = torch.tensor([1, -100, 3, 0, 3])


def one(name: str, operation: Any, **options: Any) -> Case:
    """A case whose operation takes one f32 [3, 4]."""
    return Case(name, operation, X, **options)


def in_parts(x: Tensor) -> Tensor:
    """An uninitialised tensor, filled by columns and by blocks of rows."""
    room = torch.empty(5, 4, dtype=x.dtype)
    room[:, 0] = 2.0
    room[:3, 1:] = x[:, 1:] * x[:, :3]
    room[3:, 2:] = x[1:, :2]
    room[3:, 1] = x[0, 0]
    return room * 3


def in_no_part(x: Tensor) -> Tensor:
    """A write into an empty range of rows."""
    room = x * 2
    room[3:, 1:3] = 5.0
    return room


POINTWISE = [
    Case("add broadcast", lambda x, y: x + y, [(2, 1, 4), (3, 1)]),
    Case("add alpha", lambda x, y: torch.add(x, y, alpha=0.3), PAIR),
    Case("sub alpha", lambda x, y: torch.sub(x, y, alpha=2), [(4,), (3, 1)]),
    Case("sub rank 0", lambda x, y: x - y, [(), (5,)]),
    Case("rsub", lambda x: 1 - x, [(2, 1, 2, 2)]),
    Case("mul rank 0", lambda x, y: x * y, [(), ()]),
    Case("div", lambda x, y: x / y, PAIR, positive=True),
    Case("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), [(4,), (3, 1), (3, 4)]),
    Case("lerp", lambda x, y: torch.lerp(x, y, 0.3), PAIR),
    *(one(f"pow {p}", lambda x, p=p: x**p) for p in (0, 1, 2, 3, 4)),
    *(one(f"pow {p}", lambda x, p=p: x**p, positive=True) for p in (-1, -2, 0.5, -0.5, 1.5, 2.5)),
    one("square", torch.square),
    one("sqrt", torch.sqrt, positive=True),
    one("rsqrt", torch.rsqrt, positive=True),
    one("reciprocal", torch.reciprocal, positive=True),
    one("abs", torch.abs),
    one("neg", torch.neg),
    one("sign", torch.sign),
    one("sgn", torch.sgn),
    one("floor", torch.floor),
    one("ceil", torch.ceil),
    one("round", torch.round),
    one("trunc long", lambda x: (x * 3).long()),
    one("exp", torch.exp),
    one("log", torch.log, positive=True),
    one("log1p", lambda x: torch.log1p(x * 1e-3)),
    one("log1p far", torch.log1p, positive=True),
    one("expm1", lambda x: torch.expm1(x * 1e-3)),
    one("expm1 far", lambda x: torch.expm1(x * 5), rtol=1e-4),
    one("sin", lambda x: torch.sin(x * 30), atol=2e-4),
    one("cos", lambda x: torch.cos(x * 30), atol=2e-4),
    one("erf", torch.erf),
    one("tanh", torch.tanh),
    one("sigmoid", torch.sigmoid),
    Case("maximum", torch.maximum, [(3, 4), (4,)]),
    Case("minimum", torch.minimum, [(3, 1), (3, 4)]),
    Case("maximum ties", lambda x: torch.maximum(x, x.detach().clone()), X),
    Case("maximum integers", lambda x: torch.maximum(x, -x).clamp(max=50), [INTEGERS]),
    one("clamp", lambda x: x.clamp(-0.5, 0.5)),
    one("clamp low", lambda x: x.clamp(min=0.1)),
    one("clamp high", lambda x: x.clamp(max=0.1)),
    Case("clamp tensors", lambda x, y: x.clamp(y - 0.2, y + 0.2), [(3, 4), (4,)]),
    Case("abs integers", lambda x: x.abs() % 1000, [INTEGERS]),
    Case("floor divide", lambda x: torch.stack([x // d for d in (1, 2, 3, 7, 64, 1000)]) % 65537, [INTEGERS]),
    Case("remainder", lambda x: torch.stack([x % d for d in (1, 2, 3, 7, 64, 65537)]), [INTEGERS]),
]

LOGIC = [
    Case("where", lambda m, x, y: torch.where(m, x, y), [MASK, (4,), (3, 1)]),
    Case("where scalar", lambda m, x: torch.where(m, x, 2.0) + torch.where(m, -1.0, x), [MASK, (3, 4)]),
    Case("masked fill", lambda m, x: x.masked_fill(m, 3.0), [MASK, (3, 4)]),
    Case("masked fill tensor", lambda m, x, y: x.masked_fill(m, y), [MASK, (3, 4), ()]),
    *(
        Case(f"compare {name}", lambda x, y, name=name: getattr(torch, name)(x, y), [(3, 4), (4,)])
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    one("compare scalar", lambda x: (x > 0.1) & (x < 1) | (x == 0)),
    Case("not", lambda m: ~m, [MASK]),
    Case("not integers", lambda x: ~x % 1000, [INTEGERS]),
    Case("and integers", lambda x: (x & 6) + (x | 8) % 100 + (x ^ 3) % 100, [INTEGERS]),
    Case("logical", lambda m, x: torch.logical_xor(m, x > 0) & torch.logical_or(m, x > 1), [MASK, (3, 4)]),
    Case("logical not", lambda x: torch.logical_not(x), [INTEGERS]),
    Case("add bools", lambda m: (m + m.flip(0)) * m, [MASK]),
    one("isnan", lambda x: torch.isnan(x) | torch.isinf(x / 0)),
]

OF_ONE = (
    *(
        "relu",
        "relu6",
        "gelu",
        "silu",
        "softplus",
        "elu",
        "selu",
        "celu",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
    ),
    *("logsigmoid", "mish", "softsign", "tanhshrink", "leaky_relu"),
)
ACTIVATIONS = [
    *(one(name, lambda x, name=name: getattr(F, name)(x * 2)) for name in OF_ONE),
    one("gelu tanh", lambda x: F.gelu(x, approximate="tanh")),
    one("leaky relu slope", lambda x: F.leaky_relu(x, 0.3)),
    one("elu alpha", lambda x: F.elu(x, 0.4)),
    one("softplus beta", lambda x: F.softplus(x, 3.0, 2.0)),
    one("hardtanh bounds", lambda x: F.hardtanh(x, -0.3, 0.7)),
    one("threshold", lambda x: F.threshold(x, 0.2, -0.5)),
    one("glu", lambda x: F.glu(x, 1)),
]

MOVEMENT = [
    one("written in parts", in_parts),
    one("written in no part", in_no_part),
    one("split", lambda x: torch.cat([p * (k + 1) for k, p in enumerate(x.split(3, 1))], 1)),
    one("split sizes", lambda x: x.split([1, 3], -1)[1]),
    one("chunk", lambda x: x.chunk(2, 0)[0]),
    one("unbind", lambda x: x.unbind(-1)[2] * x.unbind(0)[1][0]),
    Case("cat", lambda x, y: torch.cat([x, y, x], -2), [(2, 3), (1, 3)]),
    Case("cat nothing", lambda x: torch.cat([torch.tensor([]), x]), [(4,)]),
    one("cat an empty slice", lambda x: torch.cat([x[:, :4] * 2, x[:, 4:]], 1)),
    Case("stack", lambda x, y: torch.stack([x, y], -1), PAIR),
    one("narrow", lambda x: x.narrow(1, 1, 2)),
    one("slices", lambda x: x[1:, ::2] + x[:2, 1::2]),
    one("slice steps of three", lambda x: x[:, ::3]),
    one("select", lambda x: x[-1] * x[:, -2].sum()),
    one("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=0.5)),
    one("pad negative", lambda x: F.pad(x, (-1, 2))),
    one("flip", lambda x: x.flip(0, 1)),
    one("flip of a view", lambda x: x.t()[1:].flip(0)),
    one("roll", lambda x: x.roll((1, -1), (0, 1))),
    one("roll flat", lambda x: x.roll(5)),
    one("repeat", lambda x: x.repeat(2, 1, 3)),
    one("repeat interleave", lambda x: x.repeat_interleave(2, 1)),
    one("expand", lambda x: x[:, None].expand(3, 2, 4)),
    one("permute", lambda x: x.reshape(3, 2, 2).permute(2, 0, 1).reshape(2, -1)),
    one("movedim", lambda x: x.reshape(3, 2, 2).movedim(0, -1).flatten(1)),
    one("tril", lambda x: x.tril(-1) + x.triu(1)),
    Case("tril batch", lambda x: torch.tril(x, 1), [(2, 3, 3)]),
    one("diagonal", lambda x: x.diagonal() * x.diagonal(1)),
    Case("diagonal below", lambda x: x.diagonal(-1, 0, 2), [(3, 2, 3)]),
    one("unfold", lambda x: x.unfold(1, 2, 1)),
    one("unfold apart", lambda x: x.unfold(0, 1, 2)),
    Case("one hot", lambda y, x: F.one_hot(y, 4) * x, [torch.tensor([1, 3, 0]), (3, 4)]),
    one("creation", lambda x: x + torch.arange(4) + torch.arange(0.5, 2.5, 0.5) + x.new_full((3, 1), 2.0)),
    one("full", lambda x: x * torch.full_like(x, 3.0) + torch.ones(4) + x.new_zeros(4) + torch.zeros_like(x)),
    one("literal", lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0])),
    Case("rank 0", lambda x: x.unsqueeze(0).expand(3).clone().view(3, 1).squeeze(1), [()]),
]

REDUCTIONS = [
    *(
        one(f"{name} {axes}", lambda x, name=name, axes=axes: getattr(torch, name)(x, dim=axes))
        for name in ("sum", "mean", "amax", "amin", "var", "std", "logsumexp")
        for axes in (0, -1, (0, 1))
    ),
    *(
        one(f"{name} all", lambda x, name=name: getattr(x, name)())
        for name in ("sum", "mean", "max", "min", "var", "std", "norm")
    ),
    Case("sum middle", lambda x: x.sum((1, 3), keepdim=True), [(2, 3, 4, 2)]),
    Case("mean first and last", lambda x: x.mean((0, -1)), [(2, 3, 4, 2)]),
    Case("sum rank 0", lambda x: x.sum() + x.mean() + x.amax(), [()]),
    Case("sum long rows", lambda x: x.sum(1) + x.mean(1) + x.amax(1), [(2, 700)]),
    Case("sum bools", lambda m: m.sum(1), [MASK]),
    Case("sum integers", lambda x: (x % 1000).sum(0), [INTEGERS]),
    one("max with indices", lambda x: x.max(1).values * 2 + x.max(1).indices),
    one("min with indices", lambda x: x.min(0, keepdim=True)[0] + x.min(0)[1]),
    one("argmax", lambda x: x.argmax(0) + x.argmin(0) + x.argmax()),
    one("any and all", lambda x: (x > 1).any(1).float() + (x > -1).all(1) + (x > 3).any() + (x < 9).all()),
    one("norm", lambda x: x.norm(dim=1) + x.norm(p=1, dim=1)),
    one("norm largest", lambda x: x.detach().norm(p=math.inf, dim=1)),
    one("normalize", lambda x: F.normalize(x, dim=0)),
    one("cosine", lambda x: F.cosine_similarity(x, x * x + 1, dim=1)),
    one("variance uncorrected", lambda x: x.var(1, unbiased=False) + torch.var_mean(x, 1)[1]),
    *(one(f"cumsum {axis}", lambda x, axis=axis: x.cumsum(axis)) for axis in (0, 1)),
    Case("cumsum integers", lambda x: (x % 50).cumsum(-1), [INTEGERS]),
    Case("cumsum long", lambda x: x.cumsum(0), [(300, 2)], atol=2e-4),
    one("rms norm", lambda x: F.rms_norm(x, (4,), eps=1e-6)),
]

INDEXING = [
    Case("gather", lambda x, i: x.gather(1, i), [(3, 4), torch.tensor([[0, 0, 3], [1, 2, 1]])]),
    Case("gather first axis", lambda x, i: x.gather(0, i), [(3, 4, 2), torch.tensor([[[2, 0]], [[1, 1]]])]),
    Case("take along", lambda x, i: torch.take_along_dim(x, i, 1), [(3, 4), torch.tensor([[3], [0], [1]])]),
    Case("index rows", lambda x, i: x[i], [(3, 4), torch.tensor([[2, 0], [-1, 2]])]),
    Case("index columns", lambda x, i: x[:, i], [(3, 4, 2), torch.tensor([3, 0, 3])]),
    Case("index two", lambda x, i: x[i, i + 1], [(3, 4, 2), torch.tensor([1, 0, 1])]),
    Case("index apart", lambda x, i: x[i, :, i], [(3, 4, 3), torch.tensor([1, 0])]),
    Case("index behind", lambda x, i: x[:, i, i[:, None]], [(2, 4, 3), torch.tensor([1, 0])]),
    Case("index select", lambda x, i: x.index_select(1, i), [(3, 4), torch.tensor([1, 1, 0])]),
    Case("index add", lambda x, y, i: x.index_add(0, i, y), [(3, 4), (5, 4), torch.tensor([0, 2, 2, 0, 2])]),
    Case(
        "index put",
        lambda x, y, i: x.index_put((i,), y, accumulate=True),
        [(3, 4), (5, 4), torch.tensor([0, 2, 2, 0, 2])],
    ),
    Case(
        "scatter add",
        lambda x, y, i: x.scatter_add(1, i, y),
        [(3, 4), (3, 2), torch.tensor([[0, 0], [1, 3], [2, 2]])],
    ),
    Case("scatter", lambda x, i: x.scatter(1, i, 2.5), [(3, 4), torch.tensor([[3], [0], [1]])]),
    Case("embedding", lambda x, i: F.embedding(i, x), [(5, 3), torch.tensor([[0, 4, 4], [1, 4, 0]])]),
    Case(
        "embedding padding",
        lambda x, i: F.embedding(i, x, padding_idx=4),
        [(5, 3), torch.tensor([[0, 4, 4], [1, 4, 0]])],
    ),
]

NORMALISATION = [
    Case("layer norm", lambda x, g, b: F.layer_norm(x, (4,), g, b), [(2, 3, 4), (4,), (4,)]),
    Case("layer norm no bias", lambda x, g: F.layer_norm(x, (4,), g, None, 1e-3), [(3, 4), (4,)]),
    Case("layer norm bias only", lambda x, b: F.layer_norm(x, (4,), None, b), [(3, 4), (4,)]),
    Case("layer norm two axes", lambda x, g: F.layer_norm(x, (3, 4), g), [(2, 3, 4), (3, 4)]),
    Case("layer norm of a view", lambda x: F.layer_norm(x.transpose(0, 1), (3,)), X),
    Case("group norm", lambda x, g, b: F.group_norm(x, 2, g, b), [(2, 4, 3, 2), (4,), (4,)]),
    Case("group norm plain", lambda x: F.group_norm(x, 1), [(2, 4)]),
]

LOSSES = [
    *(
        Case(
            f"cross entropy {options}",
            lambda x, y, options=options: F.cross_entropy(x, y, **options).reshape(-1),
            [(5, 4), LABELS],
        )
        for options in (
            {},
            {"reduction": "sum"},
            {"reduction": "none"},
            {"label_smoothing": 0.1},
        )
    ),
    Case(
        "cross entropy ignoring a class",
        lambda x, y: F.cross_entropy(x, y.clamp(min=0), ignore_index=3),
        [(5, 4), LABELS],
    ),
    Case(
        "cross entropy ignoring all",
        lambda x, y: F.cross_entropy(x, y * 0 - 100, reduction="sum"),
        [(5, 4), LABELS],
    ),
    Case("class weights", lambda x, w, y: F.cross_entropy(x, y, w.detach().abs()), [(5, 4), (4,), LABELS]),
    Case(
        "class weights none",
        lambda x, w, y: F.cross_entropy(x, y, w.detach().abs(), reduction="none"),
        [(5, 4), (4,), LABELS],
    ),
    Case("one row", lambda x: F.cross_entropy(x, torch.tensor(2)), [(4,)]),
    Case(
        "cross entropy of places",
        lambda x: F.cross_entropy(x, torch.tensor([[[1, 0]], [[2, -100]]])),
        [(2, 3, 1, 2)],
    ),
    *(
        Case(
            f"{name} {reduction}",
            lambda x, y, name=name, reduction=reduction: getattr(F, name)(x, y, reduction=reduction),
            PAIR,
        )
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for reduction in ("mean", "sum", "none")
    ),
    Case(
        "bce with logits", lambda x, m: F.binary_cross_entropy_with_logits(x, m.to(x.dtype)), [(3, 4), MASK]
    ),
    Case(
        "bce with weights",
        lambda x, m, w: F.binary_cross_entropy_with_logits(
            x, m.to(x.dtype), w.detach(), pos_weight=w.detach().abs(), reduction="none"
        ),
        [(3, 4), MASK, (4,)],
    ),
    Case("bce", lambda x, m: F.binary_cross_entropy(x.sigmoid(), m.to(x.dtype)), [(3, 4), MASK]),
    Case("kl", lambda x, y: F.kl_div(x, y.softmax(1), reduction="batchmean"), PAIR),
    Case("kl of logs", lambda x, y: F.kl_div(x, y.log_softmax(1), reduction="sum", log_target=True), PAIR),
    Case("poisson", lambda x, y: F.poisson_nll_loss(x, y.detach().abs()), PAIR),
    Case("margin", lambda x, y: F.margin_ranking_loss(x, y, torch.ones(3, 4), margin=0.3), PAIR),
]

FAR = [  # 1 + exp(-18) is nearly 1: its logarithm must not round to 0
    one("softplus far", lambda x: F.softplus(x - 18).log()),
    one("logsigmoid far", lambda x: (-F.logsigmoid(x + 18)).log()),
    one("mish far", lambda x: (-F.mish(x - 18)).log()),
    one("elu near 0", lambda x: F.elu(-x.abs() * 1e-6) * 1e6),
    one("smooth l1 without beta", lambda x: F.smooth_l1_loss(x, x.detach().round(), beta=0.0)),
    one("smooth l1 without beta equal", lambda x: F.smooth_l1_loss(x, x.detach(), beta=0.0)),
    Case("mse of labels", lambda x, y: F.mse_loss(x, y.expand(3, 4)), [(3, 4), torch.arange(4)]),
    Case("hinge", lambda x: F.hinge_embedding_loss(x, torch.tensor([1, -1, 1, -1])), X),
    Case("lerp tensor", torch.lerp, [(3, 4), (4,), ()]),
    Case("addcdiv", lambda x, y: torch.addcdiv(x, y, y.abs() + 1, value=2), PAIR),
    Case("integers to a float power", lambda x: (x % 10) ** 1.0, [INTEGERS]),
    Case("cumsum of bools", lambda m: m.cumsum(1) > 1, [MASK]),
    Case("bytes", lambda x: x.any(1).long() + (x > 3).sum(1) + x.all(1), [INTEGERS.byte()]),
    Case(
        "functions of integers",
        lambda x: 2 / (x % 10 + 1) + torch.sqrt(x % 10) + torch.exp(x % 3),
        [INTEGERS],
    ),
    one("fill by a mask", lambda x: x.clone().index_put_((x > 0.3,), torch.tensor(2.5))),
    one("fill rows by a mask", lambda x: x.clone().index_put_((x[:, 0] > 0.3,), torch.tensor(2.5))),
    one("unsafe split", lambda x: torch.unsafe_split(x, 3, 1)[1]),
]

ONE_NUMBER = [
    Case(f"{name} of one number", operation, [()])
    for name, operation in (
        ("max", lambda x: torch.stack(x.max(0))),
        ("min", lambda x: torch.stack(x.min(0))),
        ("argmax", lambda x: x.argmax(-1)),
        ("argmin", lambda x: x.argmin(0, True)),
        ("max of integers", lambda x: x.long().max(0).values),
        ("index_select", lambda x: x.index_select(0, torch.tensor([0]))),
        ("index_add", lambda x: x.index_add(0, torch.tensor([0]), x * 2)),
        ("gather", lambda x: x.gather(0, torch.tensor(0))),
        ("scatter_add", lambda x: x.scatter_add(0, torch.tensor(0), x * 2)),
        ("unfold", lambda x: x.unfold(0, 1, 1)),
        ("flip", lambda x: x.flip(0)),
        ("sort", lambda x: x.sort(0).values),
        ("any", lambda x: (x > 0).any(0)),
    )
]
WITHOUT_AXES = [
    Case("index_select by one number", lambda x: x.index_select(0, torch.tensor(1)), X),
    Case("index_add at one number", lambda x: x.index_add(0, torch.tensor(1), x[:1]), [(3,)]),
    one("any of no axes", lambda x: (x > 0).any(dim=())),
    one("all of no axes", lambda x: (x > 0).all(dim=())),
    one("any of all axes", lambda x: (x > 0).any()),
    Case("in nothing", lambda x: torch.isin(x, torch.tensor([], dtype=torch.int64)), [INTEGERS]),
    Case("not in nothing", lambda x: torch.isin(x, torch.tensor([]), invert=True), [INTEGERS]),
]

CASES = [
    *ONE_NUMBER,
    *WITHOUT_AXES,
    *POINTWISE,
    *LOGIC,
    *ACTIVATIONS,
    *MOVEMENT,
    *REDUCTIONS,
    *INDEXING,
    *NORMALISATION,
    *LOSSES,
    *FAR,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operation_and_its_gradients_follow_torch(case: Case) -> None:
    result, gradients = by_capture(case)
    expected, expected_gradients = by_torch(case)
    _close(case, result, expected)
    assert len(gradients) == len(expected_gradients)
    for ours, theirs in zip(gradients, expected_gradients):
        _close(case, ours, theirs)


def _close(case: Case, ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=case.rtol, atol=case.atol)
