"""Random numbers from Philox, keyed by the state's key and step. Every draw in the graph has its own stream.

There are rules for uniform numbers and for masks, such as those of dropout. `expansion.ops.random` computes
all other random numbers from uniform ones. The forward and backward passes read the same numbers, because a
draw is one node of the graph.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from protocol.capture.lowering.checks import Unsupported, wrong_type
from protocol.capture.lowering.context import Draw, Lowering
from protocol.capture.lowering.ops.operands import f32, require_f32
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.capture.tracing.sources import BACKWARD_KEY
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import dropout as library

aten = torch.ops.aten
WORDS = 2**32
UNUSED_BITS = 8
"""The number of low bits dropped from a word, so that the rest is exact in f32."""


@lowers(aten.rand.default)
def uniform(lowering: Lowering, node: torch.fx.Node, *_: Any, **__: Any) -> View:
    """The high 24 bits of a word times 2^-24: a number in [0, 1)."""
    if lowering.dtype_of(node) is not DType.F32:
        raise wrong_type(lowering.dtype_of(node))
    b = lowering.builder
    draw = _draw(lowering, node, None)
    words = b.philox(lowering.key, lowering.step, draw.stream, tuple(node.meta["val"].shape))
    bits = b.cast(b.shr(words, b.constant(DType.U32, (), UNUSED_BITS)), DType.F32)
    return View.of(b.mul(bits, f32(lowering, 2.0 ** (UNUSED_BITS - 32))))


@lowers(aten.bernoulli.p)
def bernoulli(
    lowering: Lowering,
    node: torch.fx.Node,
    _: View | None,
    p: float,
    *,
    generator: Any = None,  # noqa: ARG001 - refused before (`rules.rule_of`)
) -> View:
    """1 with probability floor(p 2^32) / 2^32, else 0; the operand only gives the shape."""
    return _mask(lowering, node, p)


@lowers(aten.native_dropout.default)
def dropout(
    lowering: Lowering, node: torch.fx.Node, x: View, p: float, train: bool | None
) -> tuple[View, View]:
    """x mask / (1 - p), and the mask. If `train` is false, the results are x itself and a mask of ones."""
    b = lowering.builder
    mask = _mask(lowering, node, 1.0 - p if train is None or train else 1.0)
    kept = View.of(b.cast(lowering.elements(mask), DType.BOOL))
    if train is False or p == 0:
        return x, kept
    return View.of(_scaled(lowering, x, mask, 0.0 if p == 1 else 1.0 / (1.0 - p))), kept


@lowers(aten.native_dropout_backward.default)
def dropout_grad(lowering: Lowering, _: torch.fx.Node, g: View, mask: View, scale: float) -> View:
    """The product of g, `mask` and `scale`."""
    return View.of(_scaled(lowering, g, mask, scale))


def _mask(lowering: Lowering, node: torch.fx.Node, p: float) -> View:
    """An f32 mask in the shape of the node's first result. Each element is 1 with probability p, rounded down
    to a multiple of 2^-32, else 0.
    """
    if not 0.0 <= p <= 1.0:
        raise Unsupported(f"with probability {p}", "use one from 0 to 1")
    value = node.meta["val"]
    shape = tuple((value if isinstance(value, torch.Tensor) else value[0]).shape)
    below = math.floor(p * WORDS)
    if below in (0, WORDS):
        return View(f32(lowering, 1.0 if below else 0.0), shape, (0,) * len(shape))
    drawn = _draw(lowering, node, below)
    mask = lowering.call(
        library.keep_mask,
        lowering.key,
        lowering.step,
        below=below,
        stream=drawn.stream,
        **library.axes(shape),
    )
    return View.of(mask)


def _draw(lowering: Lowering, node: torch.fx.Node, below: int | None) -> Draw:
    """The node's draw. Raises `Unsupported` if the node belongs to the backward pass, as in a checkpoint that
    runs a part of the forward pass again.
    """
    if node.meta.get(BACKWARD_KEY):
        raise Unsupported(
            "drawn again in the backward pass, as torch.utils.checkpoint does",
            "leave preserve_rng_state at True, or turn checkpointing off: the second numbers would not be the first",
        )
    return lowering.next_draw(node, below)


def _scaled(lowering: Lowering, x: View, mask: View, scale: float) -> Value:
    b = lowering.builder
    kept = b.mul(lowering.elements(require_f32(x)), lowering.elements(mask, DType.F32))
    return b.mul(kept, f32(lowering, scale))
