"""One update of `torch.optim.SGD` by multiplications and additions (arithmetic.md section 9, point 5)."""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.kernels.fused import Fused
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define_by_body


def _fused(rate: Tensor, *tensors: Tensor) -> Fused | None:
    """The compiled functions, or None if they do not support these tensors. The tensors must be on the CPU
    and have one shape, and `rate` must be a single number.
    """
    fused = fused_for(tensors[0])
    alike = rate.numel() == 1 and all(t.shape == tensors[0].shape for t in tensors)
    return fused if alike and isinstance(fused, Fused) else None


def _sgd(p: Tensor, g: Tensor, rate: Tensor, *, weight_decay: float) -> Tensor | None:
    fused = _fused(rate, p, g)
    return None if fused is None else fused.sgd((p, g), rate.item(), weight_decay)[0]


@define_by_body("sgd", compiled=_sgd)
def sgd(b: Builder, p: Value, g: Value, rate: Value, *, weight_decay: float) -> Value:
    """The next parameter: p - rate (g + weight_decay p); the rate is f32 []."""
    return b.sub(p, b.mul(rate, _decay(b, p, g, weight_decay)))


def _sgd_momentum(
    p: Tensor,
    g: Tensor,
    buffer: Tensor,
    rate: Tensor,
    *,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Tensor, ...] | None:
    fused = _fused(rate, p, g, buffer)
    return None if fused is None else fused.sgd((p, g, buffer), rate.item(), weight_decay, momentum, nesterov)


@define_by_body("sgd_momentum", compiled=_sgd_momentum)
def sgd_momentum(
    b: Builder,
    p: Value,
    g: Value,
    buffer: Value,
    rate: Value,
    *,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Value, Value]:
    """The next parameter and the next momentum buffer. The learning rate is f32 [].

    d = g + weight_decay * p; buffer' = momentum * buffer + d; p' = p - rate * buffer', or with `nesterov` p'
    = p - rate * (d + momentum * buffer'). The first step equals torch's if the buffer is zero. All
    hyperparameters are rounded to f32.
    """
    m = b.constant(DType.F32, (), momentum)
    decayed = _decay(b, p, g, weight_decay)
    new_buffer = b.add(b.mul(m, buffer), decayed)
    direction = b.add(decayed, b.mul(m, new_buffer)) if nesterov else new_buffer
    return b.sub(p, b.mul(rate, direction)), new_buffer


def _decay(b: Builder, p: Value, g: Value, weight_decay: float) -> Value:
    return g if weight_decay == 0 else b.add(g, b.mul(b.constant(DType.F32, (), weight_decay), p))
