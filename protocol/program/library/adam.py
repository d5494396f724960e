"""One update of `torch.optim.AdamW` by basic arithmetic, square roots and, for `amsgrad`, maxima.

There is no `pow` (arithmetic.md section 9, point 2). torch divides by 1 - beta^t. Here the state carries this
number as `mass' = beta mass + (1 - beta)`, which is the recursion of the moments applied to ones. So the mass
starts at zero and is rounded like the moments, and nearly equal numbers are never subtracted. If beta2^t were
kept as a product, 1 - 0.999 would have only 14 correct bits. Parameter groups are handled in
`capture.optimisers.methods`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType, canonical
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define, define_by_body

BLOCK = 1 << 15
"""Elements of a block in each tensor: 128 KiB of f32, so that a block of all eight tensors stays in the L2
cache.

This is also the largest size that torch does not split over threads. Splitting a block's short operations
saves no time on two free cores (measured), and makes them several times slower if another process uses one of
the cores.
"""


def _f32(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=torch.float32, device=like.device)


@define_by_body("adamw_scales")
def adamw_scales(
    b: Builder,
    mass1: Value,
    mass2: Value,
    rate: Value,
    *,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> tuple[Value, ...]:
    """The scales of one step, which all parameters of a group share. Every operand and result is f32 [].

    The operands are `mass1` and `mass2`, which are the masses 1 - beta^(t-1) of the two moments, and the
    rate. The results are: the next mass1 and the next mass2; the size of the step, rate sqrt(mass2) / mass1;
    the eps that belongs to this size, eps sqrt(mass2); and the factor for the parameter, 1 - rate
    weight_decay. The formulas use the next masses.
    """

    def f32(value: float) -> Value:
        return b.constant(DType.F32, (), value)

    mass1 = b.add(b.mul(f32(beta1), mass1), f32(1 - beta1))
    mass2 = b.add(b.mul(f32(beta2), mass2), f32(1 - beta2))
    root = b.sqrt(mass2)
    size = b.mul(b.div(rate, mass1), root)
    kept = b.sub(f32(1.0), b.mul(rate, f32(weight_decay)))
    return mass1, mass2, size, b.mul(f32(eps), root), kept


def _adamw(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    size: Tensor,
    eps: Tensor,
    kept: Tensor,
    *largest: Tensor,
    beta1: float,
    beta2: float,
) -> tuple[Tensor, ...]:
    fused = None if largest else fused_for(p)
    if fused is not None:
        scales = fused.scalars(size, eps, kept)
        return fused.adamw((p, g, m, v), (*scales, beta1, 1 - beta1, beta2, 1 - beta2))
    factors = [_f32(x, p) for x in (beta1, 1 - beta1, beta2, 1 - beta2)]
    results = [torch.empty(p.shape, dtype=p.dtype, device=p.device) for _ in range(3 + len(largest))]
    step = BLOCK if p.device.type == "cpu" else p.numel()
    scratch = torch.empty(min(step, p.numel()), dtype=p.dtype, device=p.device)
    flat = [x.reshape(-1).split(step) for x in (p, g, m, v, *largest)]
    # Rank 0 and contiguous results are flattened as views, so the blocks are written in place.
    into = [x.view(-1).split(step) for x in results]
    for block, made in zip(zip(*flat), zip(*into)):
        _block(block, made, scratch[: block[0].numel()], (size, eps, kept), factors)
    return tuple(results)


def _block(
    operands: tuple[Tensor, ...],
    results: tuple[Tensor, ...],
    t: Tensor,
    scales: tuple[Tensor, Tensor, Tensor],
    factors: list[Tensor],
) -> None:
    """Write the update of one block to `results`; `t` is scratch memory. NaN is made canonical at the end."""
    (p, g, m, v, *largest), (p_new, m_new, v_new, *largest_new) = operands, results
    size, eps, kept = scales
    beta1, rest1, beta2, rest2 = factors
    torch.mul(beta1, m, out=m_new)
    m_new.add_(torch.mul(rest1, g, out=t))
    torch.mul(g, g, out=t)
    t.mul_(rest2)
    torch.mul(beta2, v, out=v_new)
    v_new.add_(t)
    under = v_new
    if largest:
        under = torch.maximum(largest[0], v_new, out=largest_new[0]).add_(0.0)
    _sqrt(under, t)
    t.add_(eps)
    torch.div(m_new, t, out=t)
    t.mul_(size)
    torch.mul(kept, p, out=p_new)
    p_new.sub_(t)
    # A NaN in a moment gives one in the parameter, and a NaN in any element gives one in the sum.
    total = p_new.sum()
    if p.device.type != "cpu" or bool(total != total):  # do not read `total` back from another device
        for x in results:
            x.copy_(canonical(x))


def _sqrt(x: Tensor, out: Tensor) -> None:
    """Write the square root to `out`. On the CPU numpy computes it, for the reason in `numerics.elementwise.sqrt`."""
    if x.device.type != "cpu":
        torch.sqrt(x, out=out)
        return
    with np.errstate(invalid="ignore"):
        np.sqrt(x.numpy(), out=out.numpy())


@define("adamw", kernel=_adamw)
def adamw(
    b: Builder,
    p: Value,
    g: Value,
    m: Value,
    v: Value,
    size: Value,
    eps: Value,
    kept: Value,
    *largest: Value,
    beta1: float,
    beta2: float,
) -> tuple[Value, ...]:
    """The next parameter and moments, from the present ones, the gradient `g` and the scales `size`, `eps`
    and `kept` of `adamw_scales`.

    m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; p' = kept p - size (m' / (sqrt(v') + eps)).
    For `amsgrad`, a further operand `largest` is the largest second moment so far. The maximum of `largest`
    and v' then replaces v' under the root, and is also the fourth result. If the decay is coupled, the caller
    adds it to `g`. Hyperparameters are rounded to f32.
    """

    def f32(value: float) -> Value:
        return b.constant(DType.F32, (), value)

    m = b.add(b.mul(f32(beta1), m), b.mul(f32(1 - beta1), g))
    v = b.add(b.mul(f32(beta2), v), b.mul(f32(1 - beta2), b.mul(g, g)))
    kept_most = tuple(b.maximum(x, v) for x in largest)
    root = b.sqrt(kept_most[0] if kept_most else v)
    direction = b.div(m, b.add(root, eps))
    return b.sub(b.mul(kept, p), b.mul(size, direction)), m, v, *kept_most
