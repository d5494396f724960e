"""Convolutions in the compiled library, without windows in memory (native/convolution.cpp).

`convolution_for` gives them where they may be used; where it gives None, callers write the windows out and multiply. An
instruction set is used for convolutions if it is the one that products take (`choice`) and has passed its trial here.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor

from protocol.numerics.kernels.choice import kernel_for
from protocol.numerics.kernels.fused import digest
from protocol.numerics.kernels.int16 import Int16
from protocol.numerics.kernels.native import library, variants

_log = logging.getLogger("assay.numerics")

FORWARD, AT_INPUT, AT_WEIGHT = range(3)


class Problem(ctypes.Structure):
    """AssayConvolution of native/convolution.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("left", "image", "bias", "out")),
        *(
            (name, ctypes.c_int64)
            for name in (
                *("samples", "groups", "inputs", "outputs", "height", "width", "rows", "columns"),
                *("kernel_y", "kernel_x", "stride_y", "stride_x"),
                *("padding_y", "padding_x", "dilation_y", "dilation_x"),
            )
        ),
        *((name, ctypes.c_int32) for name in ("kind", "left_bits", "image_bits", "variant", "threads")),
    )


class Convolution:
    """Convolutions of one instruction set. Operands are f32 on the CPU, results new, contiguous and canonical.

    `sliding` are kernel, stride, padding and dilation along both axes, as `_fields_` names them.
    """

    def __init__(self, variant: str) -> None:
        self.name = f"convolution-{variant}"
        self._variant = variant

    def forward(
        self, x: Tensor, w: Tensor, bias: Tensor | None, size: tuple[int, int], groups: int, **sliding: int
    ) -> Tensor:
        """x [N, C, H, W], w [O, C/G, KH, KW], bias [O] or none to [N, O, *size]; 13 x 13 bits."""
        out = torch.empty(len(x), len(w), *size)
        self._run(FORWARD, (w, x), out, (x, out), groups, (13, 13), sliding, bias)
        return out

    def at_input(self, g: Tensor, w: Tensor, size: tuple[int, int], groups: int, **sliding: int) -> Tensor:
        """g [N, O, OH, OW], w [O, C/G, KH, KW] to [N, C, *size]; 13 x 13 bits."""
        out = torch.empty(len(g), groups * w.shape[1], *size)
        self._run(AT_INPUT, (w, g), out, (out, g), groups, (13, 13), sliding)
        return out

    def at_weight(self, g: Tensor, x: Tensor, groups: int, bits: tuple[int, int], **sliding: int) -> Tensor:
        """g [N, O, OH, OW], x [N, C, H, W] to [O, C/G, KH, KW]; `bits` of g and of x, not 20 of both."""
        kernel = sliding["kernel_y"], sliding["kernel_x"]
        out = torch.empty(g.shape[1], x.shape[1] // groups, *kernel)
        self._run(AT_WEIGHT, (g, x), out, (x, g), groups, bits, sliding)
        return out

    def _run(
        self,
        kind: int,
        operands: tuple[Tensor, Tensor],
        out: Tensor,
        both: tuple[Tensor, Tensor],
        groups: int,
        bits: tuple[int, int],
        sliding: dict[str, int],
        bias: Tensor | None = None,
    ) -> None:
        left, image = (t.detach().contiguous() for t in operands)
        bias = None if bias is None else bias.detach().contiguous()
        x, g = both
        problem = Problem(
            left=left.data_ptr(),
            image=image.data_ptr(),
            bias=None if bias is None else bias.data_ptr(),
            out=out.data_ptr(),
            samples=len(x),
            groups=groups,
            inputs=x.shape[1] // groups,
            outputs=g.shape[1] // groups,
            height=x.shape[2],
            width=x.shape[3],
            rows=g.shape[2],
            columns=g.shape[3],
            kind=kind,
            left_bits=bits[0],
            image_bits=bits[1],
            variant=variants()[self._variant],
            threads=torch.get_num_threads(),
            **sliding,
        )
        native = library()
        if native is None or native.assay_convolution(ctypes.byref(problem)) != 0:
            raise MemoryError("no memory for the quantised operands of a convolution; make the batch smaller")


def convolution_for(x: Tensor) -> Convolution | None:
    """The convolutions to use for `x`, or None: not on the CPU, not built, not allowed, or not passed."""
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return None
    product = kernel_for(x.device, 20, 13)
    return _of(product.name) if isinstance(product, Int16) else None


@cache
def _of(product: str) -> Convolution | None:
    convolution = Convolution(product.removeprefix("int16-"))
    wrong = [name for name, made in trial(convolution).items() if made != DIGESTS[name]]
    if wrong:
        _log.warning("%s is not used: wrong bits in %s", convolution.name, ", ".join(wrong))
    return None if wrong else convolution


class Shape(NamedTuple):
    """A convolution of the trial: samples, channels and outputs of a group, groups, size and windows."""

    samples: int
    inputs: int
    outputs: int
    groups: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)

    def sliding(self) -> dict[str, int]:
        """The windows' attributes."""
        pairs = {name: getattr(self, name) for name in ("kernel", "stride", "padding", "dilation")}
        return {f"{name}_{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("yx")}

    def result(self) -> tuple[int, int]:
        """Height and width of the result."""
        axes = zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        y, x = ((n + 2 * p - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes)
        return y, x


SHAPES = {
    "rows of a panel": Shape(2, 9, 13, 1, (5, 32), (3, 3)),
    "many terms": Shape(3, 70, 12, 1, (8, 8), (3, 3)),
    "small planes": Shape(5, 33, 25, 1, (4, 4), (3, 3)),
    "strides": Shape(3, 4, 14, 1, (9, 16), (3, 3), (2, 2)),
    "between strides": Shape(2, 6, 5, 1, (7, 7), (1, 1), (2, 3), (0, 0)),
    "groups": Shape(2, 3, 5, 3, (7, 10), (3, 2), (1, 2), (2, 0), (2, 3)),
    "many positions": Shape(3, 3, 13, 1, (40, 41), (2, 3), (1, 1), (0, 1)),
}
"""Runs of columns of every kind, odd numbers of samples and channels, more terms than i32 holds, more than a block."""


def operand(shape: tuple[int, ...], kind: int) -> Tensor:
    """f32 without a generator. Kind 0 is ordinary, 1 at the limit of every width, 2 has zeros and special samples."""
    k = torch.arange(torch.Size(shape).numel(), dtype=torch.int64) + 1_000_003 * len(shape)
    words = ((k * 2654435761) ^ (k * 40503 << 7)) & 0xFFFFFFFF
    x = (words & 0xFFFFFF).to(torch.float32) * 2.0**-21 - 4.0
    if kind == 1:
        x = torch.where(k % 7 < 5, 1.0, -1.0) * (1 - 2.0**-24)
    if kind == 2:
        x = x.clamp(min=0.0) * 2.0**-100
        x[3], x[-1] = torch.nan, torch.inf
    return x.reshape(shape)


def _forward(shape: Shape, kind: int, c: Convolution) -> Tensor:
    x, w, _ = _operands(shape, kind)
    bias = operand((len(w),), kind) if kind else None
    return c.forward(x, w, bias, shape.result(), shape.groups, **shape.sliding())


def _at_input(shape: Shape, kind: int, c: Convolution) -> Tensor:
    _, w, g = _operands(shape, kind)
    return c.at_input(g, w, shape.size, shape.groups, **shape.sliding())


def _at_weight(bits: tuple[int, int], shape: Shape, kind: int, c: Convolution) -> Tensor:
    x, _, g = _operands(shape, kind)
    return c.at_weight(g, x, shape.groups, bits, **shape.sliding())


def _operands(s: Shape, kind: int) -> tuple[Tensor, Tensor, Tensor]:
    x = operand((s.samples, s.groups * s.inputs, *s.size), kind)
    w = operand((s.groups * s.outputs, s.inputs, *s.kernel), min(kind, 1))
    return x, w, operand((s.samples, s.groups * s.outputs, *s.result()), kind)


FUNCTIONS: dict[str, Callable[[Shape, int, Convolution], Tensor]] = {
    "forward": _forward,
    "at input": _at_input,
    "at weight": partial(_at_weight, (20, 13)),
    "at weight, gradient in windows": partial(_at_weight, (13, 20)),
}
TRIALS: dict[str, Callable[[Convolution], Tensor]] = {
    f"{function}, {name}, {kind}": partial(run, shape, kind)
    for function, run in FUNCTIONS.items()
    for name, shape in SHAPES.items()
    for kind in range(3)
}


def trial(convolution: Convolution) -> dict[str, str]:
    """Digests of all convolutions of the trial, by name."""
    return {name: digest(run(convolution)) for name, run in TRIALS.items()}


DIGESTS: dict[str, str] = {
    "forward, rows of a panel, 0": "73b0118f1b3dcff1",
    "forward, rows of a panel, 1": "39bb3b5f6f3b5b52",
    "forward, rows of a panel, 2": "9a89f83afd70fee7",
    "forward, many terms, 0": "f79650e8362fc37e",
    "forward, many terms, 1": "e40c103a5c89bb91",
    "forward, many terms, 2": "a59201a5cb00c9fc",
    "forward, small planes, 0": "f947f36f2ba84594",
    "forward, small planes, 1": "703c74faa4f50b87",
    "forward, small planes, 2": "7f78be7f3e99c36d",
    "forward, strides, 0": "5de8024e6295c5d7",
    "forward, strides, 1": "d313ff4dab0c04e6",
    "forward, strides, 2": "d3de540655e6170c",
    "forward, between strides, 0": "db2ba86f706bb64f",
    "forward, between strides, 1": "80ae0450c31bc19f",
    "forward, between strides, 2": "ab0d3c76be690f83",
    "forward, groups, 0": "778f77988538972f",
    "forward, groups, 1": "d6f6d1b647f1541e",
    "forward, groups, 2": "6dd63718a82a2258",
    "forward, many positions, 0": "bc77b2b02bc23690",
    "forward, many positions, 1": "7f5e5aa9b22626bd",
    "forward, many positions, 2": "a4019b5ba81d503e",
    "at input, rows of a panel, 0": "c000d2fe2b93618c",
    "at input, rows of a panel, 1": "006c126c1405075b",
    "at input, rows of a panel, 2": "d2ee39f6ca05e281",
    "at input, many terms, 0": "2992a0c542c38e2e",
    "at input, many terms, 1": "a763ee57d5c512f7",
    "at input, many terms, 2": "a9632a74db1912e7",
    "at input, small planes, 0": "e2ef12f4a3382304",
    "at input, small planes, 1": "0e0d0e7967aff36a",
    "at input, small planes, 2": "71faf6f3d108f35e",
    "at input, strides, 0": "6464dddd2bf629be",
    "at input, strides, 1": "8a2305d906c7a37b",
    "at input, strides, 2": "dd2581c3f3af0aba",
    "at input, between strides, 0": "7193bbb0f21f40f7",
    "at input, between strides, 1": "d86b4d0fed7a70ac",
    "at input, between strides, 2": "36c5fe5f011e8d9d",
    "at input, groups, 0": "9e389b790fbcfb88",
    "at input, groups, 1": "ff8d0171f7cffbfa",
    "at input, groups, 2": "7cb96f68d31c8986",
    "at input, many positions, 0": "9769056913ae2dce",
    "at input, many positions, 1": "e29a4cb127974c05",
    "at input, many positions, 2": "881f144e3367f89d",
    "at weight, rows of a panel, 0": "4d01133f69f11f0f",
    "at weight, rows of a panel, 1": "78068301ed46c358",
    "at weight, rows of a panel, 2": "145c0282c40906e5",
    "at weight, many terms, 0": "37d886c53a1456c2",
    "at weight, many terms, 1": "8e2265362f9ec97c",
    "at weight, many terms, 2": "e93b587da2be0fdd",
    "at weight, small planes, 0": "3b270b6fb27f46f0",
    "at weight, small planes, 1": "0e31f06d73c72e46",
    "at weight, small planes, 2": "b2a4110c1619ffc3",
    "at weight, strides, 0": "1d0d17961adbb69e",
    "at weight, strides, 1": "f0ffea251500e463",
    "at weight, strides, 2": "24cf2dc6d73d99d6",
    "at weight, between strides, 0": "fef623c20f842c92",
    "at weight, between strides, 1": "05536297b6af2073",
    "at weight, between strides, 2": "50c9d5c16692dd0d",
    "at weight, groups, 0": "e0b9ad143786c08a",
    "at weight, groups, 1": "e503cf66fcdf4ea7",
    "at weight, groups, 2": "efc82fa6c77428eb",
    "at weight, many positions, 0": "018237c81bb95c6c",
    "at weight, many positions, 1": "ebd2e2b4ba4c00b3",
    "at weight, many positions, 2": "c16a0e977e1c63de",
    "at weight, gradient in windows, rows of a panel, 0": "ed5af2cd0558ba08",
    "at weight, gradient in windows, rows of a panel, 1": "78068301ed46c358",
    "at weight, gradient in windows, rows of a panel, 2": "145c0282c40906e5",
    "at weight, gradient in windows, many terms, 0": "1fbb99f44c767d7b",
    "at weight, gradient in windows, many terms, 1": "8e2265362f9ec97c",
    "at weight, gradient in windows, many terms, 2": "e93b587da2be0fdd",
    "at weight, gradient in windows, small planes, 0": "4dd980d661c7f020",
    "at weight, gradient in windows, small planes, 1": "0e31f06d73c72e46",
    "at weight, gradient in windows, small planes, 2": "b2a4110c1619ffc3",
    "at weight, gradient in windows, strides, 0": "024a33442b09180e",
    "at weight, gradient in windows, strides, 1": "f0ffea251500e463",
    "at weight, gradient in windows, strides, 2": "24cf2dc6d73d99d6",
    "at weight, gradient in windows, between strides, 0": "5845cdc2c91e54c0",
    "at weight, gradient in windows, between strides, 1": "05536297b6af2073",
    "at weight, gradient in windows, between strides, 2": "50c9d5c16692dd0d",
    "at weight, gradient in windows, groups, 0": "b79f067e042e2f99",
    "at weight, gradient in windows, groups, 1": "e503cf66fcdf4ea7",
    "at weight, gradient in windows, groups, 2": "efc82fa6c77428eb",
    "at weight, gradient in windows, many positions, 0": "dc7d2dfed0701fbc",
    "at weight, gradient in windows, many positions, 1": "ebd2e2b4ba4c00b3",
    "at weight, gradient in windows, many positions, 2": "c16a0e977e1c63de",
}
"""Of the plain implementations (tests/unit/library/test_compiled_layers.py)."""
