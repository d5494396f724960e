"""The self-test of the functions in `Channels` (arithmetic.md section 8). `DIGESTS` holds the digests of the
right results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from torch import Tensor

from protocol.numerics.kernels.channels import Channels
from protocol.numerics.kernels.fused_self_test import digest, numbers, wide

Results = Tensor | tuple[Tensor, ...]


def digests_of(channels: Channels) -> dict[str, str]:
    """Digests of every test's results, by name."""
    return {name: digest(run(channels)) for name, run in TESTS.items()}


def _planes(seed: int, ordinary: bool) -> Tensor:
    """f32 [N, C, S]: each row of `numbers` is one channel of one sample. If `ordinary`, only every third row
    is used, which leaves out the rows of arbitrary bits.
    """
    rows = numbers(seed)
    return rows[1::3].reshape(2, 4, -1) if ordinary else rows.reshape(4, 6, -1)


def _vector(seed: int, ordinary: bool) -> Tensor:
    return _planes(seed, ordinary)[1, :, 0].contiguous()


def _statistics(ordinary: bool, channels: Channels) -> Results:
    return channels.statistics(_planes(1, ordinary), 1e-5)


def _sums(ordinary: bool, channels: Channels) -> Results:
    return channels.sums(_planes(1, ordinary), _planes(2, ordinary), *(_vector(k, ordinary) for k in (3, 4)))


def _normalise(affine: int, ordinary: bool, channels: Channels) -> Results:
    vectors = [_vector(k, ordinary) if k < 5 + affine else None for k in (3, 4, 5, 6)]
    return channels.normalise(_planes(2, ordinary), *vectors)  # type: ignore[arg-type]  # the first two are there


def _grad(affine: bool, ordinary: bool, channels: Channels) -> Results:
    mean, rstd, total, along, gain = (_vector(k, ordinary) for k in range(3, 8))
    x, g = _planes(2, ordinary), _planes(1, ordinary)
    return channels.grad(g, x, (mean, rstd), (total, along), gain if affine else None)


def _long(channels: Channels) -> Results:
    """The results of all functions on channels that are long enough for channels.cpp to compute each row as a
    separate piece.
    """
    x, g = (wide(seed).reshape(-1)[: math.prod(LONG)].reshape(LONG) for seed in (1, 2))
    mean, rstd, total, along, gain, bias = (wide(3)[10, k : k + LONG[1]] for k in range(6))
    return (
        *channels.statistics(x, 1e-5),
        *channels.sums(g, x, mean, rstd),
        channels.normalise(x, mean, rstd, gain, bias),
        channels.grad(g, x, (mean, rstd), (total, along), gain),
    )


LONG = (1, 2, 20_011)
"""Samples, channels and positions. Each row of a channel has 20,011 elements, more than the 2^14 that a piece
usually has.
"""


FUNCTIONS: dict[str, Callable[[bool, Channels], Results]] = {
    "statistics": _statistics,
    "sums": _sums,
    **{f"normalise {k}": partial(_normalise, k) for k in range(3)},
    **{f"grad {k}": partial(_grad, bool(k)) for k in range(2)},
}
TESTS: dict[str, Callable[[Channels], Results]] = {
    **{
        f"{name}{' of ordinary numbers' if ordinary else ''}": partial(run, ordinary)
        for ordinary in (False, True)
        for name, run in FUNCTIONS.items()
    },
    "all of long channels": _long,
}
DIGESTS: dict[str, str] = {
    "statistics": "f1f8fc105d626afc",
    "sums": "26c319c59aabc0e4",
    "normalise 0": "3ec5933b818fecd5",
    "normalise 1": "a4ae195e4e8c2246",
    "normalise 2": "33b75f093c3bef4c",
    "grad 0": "b22d17159ed62264",
    "grad 1": "1711541eec075d2d",
    "statistics of ordinary numbers": "420f4ce4f1030408",
    "sums of ordinary numbers": "bd693468793f90e7",
    "normalise 0 of ordinary numbers": "18417fdd6857f095",
    "normalise 1 of ordinary numbers": "33f311c7aa787ca4",
    "normalise 2 of ordinary numbers": "b49317c6bcde743f",
    "grad 0 of ordinary numbers": "fa6e0c7b40e63ce3",
    "grad 1 of ordinary numbers": "50826744df8d0ec7",
    "all of long channels": "543867f4dae607c9",
}
"""Digests of the plain implementations' results (tests/unit/library/test_compiled_layers.py checks them)."""
