"""Random numbers of several distributions, computed from uniform ones (`lowering.ops.random`), which have
24 random bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from protocol.capture.expansion.table import aten, expands

LEAST = 2.0**-25
"""The smallest exponential random number at rate 1: half of the smallest nonzero uniform number."""
MOST_EXACT = 2**24
"""The number of values that one uniform number can take."""
MOST_INTEGERS = 2**31
"""Integers are drawn from ranges of at most this size. They must also fit into 32 bits."""


@expands(aten.rand_like.default)
def rand_like(x: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Uniform numbers in [0, 1), in the shape of x."""
    return torch.rand(x.shape, dtype=dtype or x.dtype, device=x.device)


@expands(aten.rand.generator)
def rand(shape: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Uniform numbers in [0, 1), for code that passes None as the generator."""
    return torch.rand(shape, dtype=dtype)


@expands(aten.randn.default, aten.randn.generator)
def randn(shape: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """sqrt(-2 log(1 - u)) cos(2 pi v) for uniform u and v (Box and Muller): normal, at most 5.8 in magnitude."""
    u, v = torch.rand(shape, dtype=dtype), torch.rand(shape, dtype=dtype)
    return (-2 * (1 - u).log()).sqrt() * (v * (2 * math.pi)).cos()


@expands(aten.randn_like.default)
def randn_like(x: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Standard normal numbers in the shape of x."""
    return torch.randn(x.shape, dtype=dtype or x.dtype, device=x.device)


@expands(aten.normal_functional.default)
def normal(x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
    """Normally distributed numbers in the shape of x. `mean` and `std` are the same for all elements."""
    return torch.randn_like(x) * std + mean


@expands(aten.normal.float_float)
def normal_of_shape(mean: float, std: float, shape: Sequence[int], **_: Any) -> Tensor:
    """Normally distributed numbers in the given shape. `mean` and `std` are the same for all elements."""
    return torch.randn(shape) * std + mean


@expands(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal_of_each(mean: Tensor | float, std: Tensor | float = 1.0, **_: Any) -> Tensor:
    """Normally distributed numbers. The mean, the standard deviation or both are given per element."""
    shape = torch.broadcast_shapes(*(x.shape for x in (mean, std) if isinstance(x, Tensor)))
    return torch.randn(shape) * std + mean


@expands(aten.uniform.default)
def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    """Uniform numbers between `low` and `high`, in the shape of x."""
    return torch.rand_like(x) * (high - low) + low


@expands(aten.exponential.default)
def exponential(x: Tensor, rate: float = 1.0, **_: Any) -> Tensor:
    """-log(1 - u) / rate for a uniform u, but at least 2^-25 / rate, so that its logarithm is finite."""
    return (-(1 - torch.rand_like(x)).log()).clamp(min=LEAST) * (1 / rate)


@expands(aten.bernoulli.default)
def bernoulli(p: Tensor, **_: Any) -> Tensor:
    """Random numbers 0 and 1, in the shape and type of `p`. Each element of `p` is the probability of a 1 at
    its place.
    """
    return (torch.rand_like(p) < p).to(p.dtype)


@expands(aten.bernoulli.Tensor)
def bernoulli_of_each(x: Tensor, p: Tensor, **_: Any) -> Tensor:
    """Random numbers 0 and 1, in the shape and type of x. `p` gives the probability of a 1 for each element."""
    return (torch.rand(x.shape, device=x.device) < p).to(x.dtype)


@expands(aten.randint.default, aten.randint.generator)
def randint(high: int, shape: Sequence[int], *, dtype: torch.dtype | None = torch.int64, **_: Any) -> Tensor:
    """Random integers from 0 to `high` - 1."""
    return randint_from(0, high, shape, dtype=dtype)


@expands(aten.randint.low, aten.randint.low_generator)
def randint_from(
    low: int, high: int, shape: Sequence[int], *, dtype: torch.dtype | None = torch.int64, **_: Any
) -> Tensor:
    """Random integers from `low` to `high` - 1. The distance of an integer from `low` is the product of a
    uniform number and the size of the range, rounded down. If the size exceeds 2^24, the distance is 31
    random bits modulo the size, so some integers are more likely than others. A size of more than
    `MOST_INTEGERS` is refused, because these bits would never give the upper integers. So are integers that
    32 bits cannot hold.
    """
    count = high - low
    if count > MOST_INTEGERS or low < -MOST_INTEGERS or high > MOST_INTEGERS:
        raise NotImplementedError("integers beyond 31 random bits, or beyond 32 bits")
    u = torch.rand(shape, dtype=torch.float32)
    if count <= MOST_EXACT:
        found = (u * count).to(torch.int64).clamp(max=count - 1)
    else:
        above = (torch.rand(shape, dtype=torch.float32) * 128).to(torch.int64)
        found = (above * MOST_EXACT + (u * MOST_EXACT).to(torch.int64)) % count
    return (found + low).to(dtype or torch.int64)


@expands(aten.randint_like.default)
def randint_like(x: Tensor, high: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Random integers from 0 to `high` - 1, in the shape of x."""
    return randint_from(0, high, x.shape, dtype=dtype or x.dtype)


@expands(aten.randint_like.low_dtype)
def randint_like_from(
    x: Tensor, low: int, high: int, *, dtype: torch.dtype | None = None, **_: Any
) -> Tensor:
    """Random integers from `low` to `high` - 1, in the shape of x."""
    return randint_from(low, high, x.shape, dtype=dtype or x.dtype)


@expands(aten.random.to)
def random_below(x: Tensor, high: int, **_: Any) -> Tensor:
    """Random integers from 0 to `high` - 1, in the shape and type of x."""
    return randint_from(0, high, x.shape, dtype=x.dtype)


@expands(aten.randperm.default, aten.randperm.generator)
def randperm(count: int, *, dtype: torch.dtype | None = torch.int64, **_: Any) -> Tensor:
    """A random permutation: the order of `count` uniform random numbers."""
    return torch.rand(count).sort(stable=True).indices.to(dtype or torch.int64)


@expands(aten.multinomial.default)
def multinomial(weights: Tensor, count: int, replacement: bool = False, **_: Any) -> Tensor:
    """Places drawn with probabilities in proportion to their weights. Without replacement, every place gets
    an exponential random number with its weight as the rate, and the places of the `count` smallest numbers
    are drawn.
    """
    if replacement:
        upto = weights.cumsum(-1)
        u = torch.rand((*weights.shape[:-1], count), device=weights.device) * upto[..., -1:]
        place = (upto.unsqueeze(-2) <= u.unsqueeze(-1)).to(torch.int64).sum(-1)
        return place.clamp(max=weights.shape[-1] - 1)
    times = -(1 - torch.rand_like(weights)).log() / weights
    times = torch.where(weights > 0, times, math.inf)
    return times.topk(count, largest=False).indices
