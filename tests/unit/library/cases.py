"""Cases for every library function. Their operands are difficult, and their shapes need padding, fill a row,
or span several blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from protocol.numerics.types import DType, canonical
from protocol.program.library.function import Attribute
from protocol.program.types import TensorType
from tests.vectors.numerics_edges import OF as EDGES

F32, I32, U32 = DType.F32, DType.I32, DType.U32


def f32(*shape: int) -> TensorType:
    """An f32 type of this shape."""
    return TensorType(F32, shape)


@dataclass(frozen=True)
class Case:
    """A call: function, operand types and attributes. i32 operands are from -2 to `labels` + 1."""

    function: str
    operands: tuple[TensorType, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    labels: int = 0

    def __str__(self) -> str:
        shapes = " ".join("x".join(map(str, type_.shape)) or "scalar" for type_ in self.operands)
        return f"{self.function} {shapes}"


LABELS = TensorType(I32, (5,))
PLACES = TensorType(I32, (2, 3, 3, 3))
KEY, STEP = TensorType(U32, (2,)), TensorType(U32, ())
BETAS = {"beta1": 0.9, "beta2": 0.99}
NLL_GRAD = {"classes": 10, "ignore": -1, "reduction": 1}
MOMENTUM = {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True}


def sliding(kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, **more: int) -> dict[str, int]:
    """Attributes of a convolution or pooling with the same values for height and width, plus `more`."""
    sizes = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return {f"{name}_{axis}": size for name, size in sizes.items() for axis in "yx"} | more


WIDE = {"kernel_x": 5, "stride_x": 3, "padding_x": 1, "dilation_x": 1}
"""Attributes for the width that differ from those for the height."""

T, B, H = 18, 2, 3
"""Steps, rows and width of recurrent layers. A frame may have at most 16 calls of one repeat, and T exceeds
this limit.
"""
RECURRENT = [
    Case("lstm", (f32(T, B, 4 * H), f32(B, H), f32(B, H), f32(4 * H, H), f32(4 * H)), {"px": 13, "py": 13}),
    Case("lstm", (f32(1, B, 4 * H), f32(B, H), f32(B, H), f32(4 * H, H)), {"px": 20, "py": 13}),
    Case(
        "lstm_grad",
        (*[f32(T, B, H)] * 2, f32(T, B, 4 * H), *[f32(T, B, H)] * 2, f32(4 * H, H)),
        {"px": 13, "py": 13},
    ),
    Case("gru", (f32(T, B, 3 * H), f32(B, H), f32(3 * H, H), f32(3 * H)), {"px": 13, "py": 13}),
    Case(
        "gru_grad",
        (f32(T, B, H), f32(T, B, 3 * H), *[f32(T, B, H)] * 2, f32(3 * H, H)),
        {"px": 13, "py": 13},
    ),
    *(
        Case(name, operands, {"relu": relu, "px": 13, "py": 13})
        for relu in (False, True)
        for name, operands in {
            "rnn": (f32(T, B, H), f32(B, H), f32(H, H), f32(H)),
            "rnn_grad": (*[f32(T, B, H)] * 2, f32(H, H)),
        }.items()
    ),
]


def message(blocks: int, indexed: bool = True) -> tuple[TensorType, ...]:
    """Types of the tensors of a lane's message, except its `count` tensor."""
    byte = TensorType(DType.U8, (blocks,))
    return *[byte] * (2 if indexed else 1), TensorType(I32, (blocks // 64,))


def absorbing(block: int, size: int, lanes: int) -> Case:
    """A `lane_absorb` of messages from `lanes` lanes."""
    sent = message(size // block, block > 1)
    lane = TensorType(I32, ())
    operands = (f32(size), f32(size), lane, *sent, *lanes * (*sent, f32()))
    return Case("lane_absorb", operands, {"block": block, "rate": 0.7, "most_exponent": 4}, labels=6)


LANES = [
    *(
        Case("lane_emit", (f32(size),) * 3, {"block": block, "decay": decay, "most_exponent": most})
        for block, size, decay, most in (
            (1, 192, 0.9, 3),
            (8, 1024, 1.0, 3),
            (32, 4096, 0.9, -20),
            (64, 8192, 0.9, 128),
        )
    ),
    *map(absorbing, (1, 8, 16, 64), (192, 1024, 2048, 4096), (3, 5, 16, 1)),
]

CASES = [
    *RECURRENT,
    *LANES,
    Case("linear", (f32(5, 10), f32(7, 10), f32(7))),
    Case("linear", (f32(3, 256), f32(2, 256))),
    Case("linear", (f32(2, 513), f32(3, 513), f32(3))),
    Case("linear", (f32(1, 1), f32(1, 1))),
    Case("matmul", (f32(4, 12), f32(12, 3))),
    Case("linear_grad_input", (f32(6, 10), f32(10, 9))),
    Case("linear_grad_input", (f32(6, 10), f32(10, 9)), {"px": 20, "py": 13}),
    Case("linear_grad_weight", (f32(33, 4), f32(33, 5)), {"px": 20, "py": 13}),
    Case("linear_grad_weight", (f32(300, 3), f32(300, 2)), {"px": 13, "py": 20}),
    Case("matmul", (f32(2, 3, 4, 7), f32(2, 3, 7, 5)), {"px": 20, "py": 20}),
    Case("matmul", (f32(5, 6), f32(6, 3), f32(3))),
    Case("matmul_nt", (f32(2, 3, 4, 16), f32(2, 3, 5, 16)), {"px": 13, "py": 13}),
    Case("matmul_nt", (f32(1, 3, 300), f32(1, 2, 300)), {"px": 20, "py": 20}),
    Case("matmul_tn", (f32(3, 9, 4), f32(3, 9, 5)), {"px": 20, "py": 20}),
    Case("sum_rows", (f32(4, 10),)),
    Case("sum_rows", (f32(2, 700),)),
    Case("sum_columns", (f32(33, 6),)),
    Case("sum_columns", (f32(2000, 300),)),
    Case("sum_units", (f32(3, 7),), {"divisor": 1}),
    Case("sum_units", (*[f32(5, 9)] * 3,), {"divisor": 3}),
    Case("sum_units", (*[f32()] * 4,), {"divisor": 4}),
    Case("sum_units", (*[f32(70_001)] * 2,), {"divisor": 2}),
    Case("sum_units", (*[f32(33)] * 16,), {"divisor": 48}),
    Case("cumulative_sum", (f32(2, 3, 10),)),
    Case("cumulative_sum", (f32(300),)),
    Case("argmax_rows", (f32(9, 10),)),
    Case("argmax_rows", (f32(3, 300),)),
    Case("exp", (f32(3, 50),)),
    Case("log", (f32(3, 50),)),
    *(Case(name, (f32(3, 50),)) for name in ("tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")),
    Case("keep_mask", (KEY, STEP), {"below": 3 << 30, "stream": 3, "d0": 5, "d1": 13}),
    Case("keep_mask", (KEY, STEP), {"below": 1, "stream": 1, "d0": 2}),
    Case("softmax", (f32(6, 10),), {"safe": False}),
    Case("softmax", (f32(2, 3, 4, 33),), {"safe": True}),
    Case("softmax", (f32(300, 257),), {"safe": True}),
    Case("softmax_grad", (f32(2, 5, 10), f32(2, 5, 10))),
    Case("softmax_grad", (f32(2, 300), f32(2, 300))),
    Case("log_softmax", (f32(6, 10),)),
    Case("log_softmax", (f32(2, 256),)),
    Case("log_softmax_grad", (f32(6, 10), f32(6, 10))),
    Case("nll_loss", (f32(5, 10), LABELS), {"ignore": -1, "reduction": 1}, labels=10),
    Case("nll_loss", (f32(5, 1), LABELS), {"ignore": -100, "reduction": 1}, labels=1),
    Case("nll_loss", (f32(5, 10), LABELS, f32(10)), {"ignore": 3, "reduction": 1}, labels=10),
    Case("nll_loss", (f32(5, 10), LABELS, f32(10)), {"ignore": -1, "reduction": 0}, labels=10),
    Case("nll_loss", (f32(5, 3), LABELS), {"ignore": 0, "reduction": 2}, labels=3),
    Case("nll_loss_grad", (f32(), LABELS, f32()), NLL_GRAD, labels=10),
    Case("nll_loss_grad", (f32(), LABELS, f32(), f32(10)), NLL_GRAD | {"ignore": 4}, labels=10),
    Case("nll_loss_grad", (f32(5), LABELS, f32(), f32(10)), NLL_GRAD | {"reduction": 0}, labels=10),
    Case("nll_loss_grad", (f32(), LABELS, f32()), NLL_GRAD | {"reduction": 2}, labels=10),
    Case("nll_loss_grad", (f32(), TensorType(I32, (1,)), f32()), NLL_GRAD | {"reduction": 0}, labels=10),
    Case("mse_loss", (f32(70), f32(70)), {"reduction": 1}),
    Case("mse_loss", (f32(70), f32(70)), {"reduction": 2}),
    Case("mse_loss", (f32(7), f32(7)), {"reduction": 0}),
    Case("mse_loss_grad", (f32(), f32(70), f32(70)), {"reduction": 1}),
    Case("mse_loss_grad", (f32(7), f32(7), f32(7)), {"reduction": 0}),
    Case("layer_norm", (f32(6, 10), f32(10), f32(10)), {"eps": 1e-5}),
    Case("layer_norm", (f32(300, 300), f32(300)), {"eps": 1e-6}),
    Case("layer_norm", (f32(4200, 256), f32(256), f32(256)), {"eps": 1e-6}),
    Case("layer_norm", (f32(2, 256),), {"eps": 0.0}),
    Case("layer_norm_grad", (f32(6, 10), f32(6, 10), f32(6, 1), f32(6, 1), f32(10))),
    Case("layer_norm_grad", (f32(3, 300), f32(3, 300), f32(3, 1), f32(3, 1))),
    Case("layer_norm_grad_gain", (f32(33, 10), f32(33, 10), f32(33, 1), f32(33, 1))),
    Case("embedding_grad", (f32(5, 3), LABELS), {"rows": 4}, labels=4),
    Case("embedding_grad", (f32(300, 2), TensorType(I32, (300,))), {"rows": 9}, labels=9),
    Case("gelu", (f32(5, 40),), {"tanh": False}),
    Case("gelu", (f32(5, 40),), {"tanh": True}),
    Case("gelu_grad", (f32(5, 40), f32(5, 40)), {"tanh": False}),
    Case("gelu_grad", (f32(5, 40), f32(5, 40)), {"tanh": True}),
    Case("silu", (f32(5, 40),)),
    Case("silu_grad", (f32(5, 40), f32(5, 40))),
    Case("sgd", (f32(4, 6), f32(4, 6), f32()), {"weight_decay": 0.0}),
    Case("sgd", (f32(4, 6), f32(4, 6), f32()), {"weight_decay": 0.1}),
    Case("sgd_momentum", (f32(40), f32(40), f32(40), f32()), MOMENTUM),
    Case(
        "sgd_momentum",
        (f32(40), f32(40), f32(40), f32()),
        MOMENTUM | {"nesterov": False, "weight_decay": 0.0},
    ),
    Case("adamw_scales", (f32(), f32(), f32()), BETAS | {"eps": 1e-8, "weight_decay": 0.1}),
    Case("adamw", (*[f32(3, 70)] * 4, f32(), f32(), f32()), BETAS),
    Case("adamw", (*[f32(3, 30)] * 4, f32(), f32(), f32(), f32(3, 30)), BETAS),
    Case("adamw", (*[f32(70_001)] * 4, f32(), f32(), f32()), BETAS),
    Case("square_sum", (f32(3, 5),)),
    Case("square_sum", (f32(),)),
    Case("square_sum", (f32(4096),)),
    Case("square_sum", (f32(70_001),)),
    Case("clip_scale", (f32(7),), {"limit": 1.5}),
    Case("clip_scale", (f32(4097),), {"limit": 1.5}),
    Case("clip_value", (f32(3, 30),), {"limit": 0.5}),
    Case("conv", (f32(2, 3, 5, 6), f32(4, 3, 3, 3)), sliding(3, padding=1, groups=1)),
    Case("conv", (f32(2, 4, 7, 9), f32(6, 2, 3, 5), f32(6)), sliding(3, 2, 2, groups=2) | WIDE),
    Case("conv", (f32(1, 30, 4, 4), f32(3, 30, 3, 3), f32(3)), sliding(3, dilation=1, groups=1)),
    Case("conv", (f32(3, 2, 1, 9), f32(2, 1, 1, 1)), sliding(1, 2, groups=2)),
    Case("conv", (f32(2, 3, 5, 6), f32(4, 3, 3, 3)), sliding(3, padding=1, groups=1, px=20, py=20)),
    Case("conv", (f32(2, 4, 5, 6), f32(4, 2, 3, 3)), sliding(3, padding=1, groups=2, px=20, py=13)),
    Case(
        "conv_grad_input",
        (f32(2, 4, 5, 6), f32(4, 3, 3, 3)),
        sliding(3, padding=1, groups=1, height=5, width=6),
    ),
    Case(
        "conv_grad_input",
        (f32(2, 6, 5, 3), f32(6, 2, 3, 5)),
        sliding(3, 2, 2, groups=2, height=8, width=9) | WIDE,
    ),
    Case(
        "conv_grad_input",
        (f32(2, 4, 5, 6), f32(4, 3, 3, 3)),
        sliding(3, padding=1, groups=1, height=5, width=6, px=13, py=20),
    ),
    Case(
        "conv_grad_input", (f32(2, 3, 4, 4), f32(3, 2, 1, 1)), sliding(1, 2, 1, groups=1, height=5, width=6)
    ),
    Case(
        "conv_grad_input",
        (f32(1, 2, 3, 3), f32(2, 1, 2, 2)),
        sliding(2, 2, 0, 3, groups=1, height=9, width=8),
    ),
    Case(
        "conv_grad_weight",
        (f32(2, 4, 5, 6), f32(2, 3, 5, 6)),
        sliding(3, padding=1, groups=1, gradient_in_windows=0),
    ),
    Case(
        "conv_grad_weight",
        (f32(2, 6, 5, 3), f32(2, 4, 8, 9)),
        sliding(3, 2, 2, groups=2, gradient_in_windows=1) | WIDE,
    ),
    Case(
        "conv_grad_weight",
        (f32(2, 4, 5, 6), f32(2, 3, 5, 6)),
        sliding(3, padding=1, groups=1, gradient_in_windows=0, px=20, py=20),
    ),
    Case(
        "conv_grad_weight", (f32(3, 2, 9, 10), f32(3, 1, 9, 10)), sliding(1, groups=1, gradient_in_windows=0)
    ),
    Case("max_pool", (f32(2, 3, 6, 7),), sliding(2, 2, rows=3, columns=3)),
    Case("max_pool", (f32(2, 2, 6, 7),), sliding(3, 2, 1, rows=4, columns=4)),
    Case("max_pool", (f32(1, 2, 9, 7),), sliding(3, 1, 1, 2, rows=7, columns=5)),
    Case("max_pool", (f32(1, 1, 7, 8),), sliding(4, 1, 2, 3, rows=2, columns=3)),
    Case("max_pool_grad", (f32(2, 3, 3, 3), PLACES), sliding(2, 2, height=6, width=7), labels=42),
    Case("max_pool_grad", (f32(2, 3, 3, 3), PLACES), sliding(3, 2, 1, height=5, width=6), labels=30),
    Case("mean_pool", (f32(2, 3, 6, 7),), sliding(2, 2, divisor=4, include_padding=1)),
    Case("mean_pool", (f32(2, 2, 6, 7),), sliding(3, 2, 1, divisor=9, include_padding=0)),
    Case(
        "mean_pool_grad",
        (f32(2, 3, 3, 3),),
        sliding(2, 2, height=6, width=7, divisor=4, include_padding=1),
    ),
    Case(
        "mean_pool_grad",
        (f32(2, 2, 3, 4),),
        sliding(3, 2, 1, height=6, width=7, divisor=9, include_padding=0),
    ),
    Case("batch_statistics", (f32(5, 3, 7),), {"eps": 1e-5}),
    Case("batch_statistics", (f32(1, 2, 1),), {"eps": 1e-5}),
    Case("batch_statistics", (f32(9, 2, 60),), {"eps": 1e-3}),
    Case("batch_normalise", (f32(5, 3, 7), f32(3), f32(3))),
    Case("batch_normalise", (f32(5, 3, 7), *[f32(3)] * 4)),
    Case("batch_norm_sums", (f32(5, 3, 7), f32(5, 3, 7), f32(3), f32(3))),
    Case("batch_norm_grad", (f32(5, 3, 7), f32(5, 3, 7), *[f32(3)] * 4)),
    Case("batch_norm_grad", (f32(9, 2, 60), f32(9, 2, 60), *[f32(2)] * 5)),
    Case("draw_batch", (KEY, STEP), {"batch": 65, "rows": 1500, "stream": 3}),
    Case("draw_batch", (KEY, STEP), {"batch": 4, "rows": 1, "stream": 0}),
    Case("draw_from_epoch", (KEY, STEP), {"batch": 65, "rows": 1500, "stream": 3}),
    Case("draw_from_epoch", (KEY, STEP), {"batch": 1, "rows": 1, "stream": 0}),
]

FILLS = ("normal", "wide", "bits", "edges", "zeros")
"""`normal`: as in training. `wide`: 60 binades and a few exact zeros. `bits`: any bits. `edges`: NaNs,
infinities, subnormals, the largest values, ties. `zeros`: zeros of both signs."""


def operands(case: Case, fill: str, seed: int) -> list[Tensor]:
    """Operands for a case, determined by the seed."""
    generator = torch.Generator().manual_seed(seed)
    return [_tensor(type_, fill, case.labels, generator) for type_ in case.operands]


def _tensor(type_: TensorType, fill: str, labels: int, generator: torch.Generator) -> Tensor:
    shape = type_.shape
    if type_.dtype is DType.U8:  # indices in a block, indices beyond it, and values
        byte = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        return torch.where(torch.rand(shape, generator=generator) < 0.5, byte % 8, byte)
    if type_.dtype is I32:
        return torch.randint(-2, labels + 2, shape, generator=generator, dtype=torch.int32)
    if type_.dtype is U32 or fill == "bits":
        words = torch.randint(-(2**31), 2**31, shape, generator=generator, dtype=torch.int64).to(torch.int32)
        return words if type_.dtype is U32 else canonical(words.view(torch.float32))
    normal = torch.randn(shape, generator=generator)
    if fill == "normal":
        return normal
    if fill == "wide":
        spread = torch.exp2(torch.randint(-30, 31, shape, generator=generator).float())
        return torch.where(torch.rand(shape, generator=generator) < 0.1, 0.0, normal * spread)
    if fill == "zeros":
        return normal * 0.0
    edges = torch.tensor(EDGES[F32], dtype=torch.int64).to(torch.int32).view(torch.float32)
    chosen = edges[torch.randint(0, len(edges), shape, generator=generator)]
    # One edge can turn a whole row into NaN, so most rows have none.
    return canonical(torch.where(torch.rand(shape, generator=generator) < 0.15, chosen, normal))
