"""The self-test of fused functions: arithmetic.md section 8; `fused_digests` holds the right digests.

Every function is tested on numbers of all kinds. Each function of native/fused.cpp is tested again on a table
wide enough for paths that a small one does not reach: several threads, column sums over several pieces, a
second strip of columns, several blocks of a row. Most of these tables have no NaN, infinity or huge number,
because these would hide the other elements of a sum.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from protocol.numerics.cuda.fused import CudaFused
from protocol.numerics.kernels.fused import Map, Pair
from protocol.numerics.kernels.native import empty
from protocol.numerics.types import canonical

DEVICE = torch.device("cpu")


def digests_of(fused: Any, device: torch.device = DEVICE) -> dict[str, str]:
    """For every test that `fused` must pass, the test's name and the digest of its results. The operands are
    on `device`.
    """
    placed = fused if device == DEVICE else _Placed(fused, device)
    tests = TESTS if isinstance(fused, CudaFused) else {**TESTS, **CPU_TESTS, **WIDE_TESTS}
    return {name: digest(run(placed)) for name, run in tests.items()}


class _Placed:
    """Wraps functions to move their operands from the CPU, where self-tests make them, to a device."""

    def __init__(self, fused: Any, device: torch.device) -> None:
        self._fused, self._device = fused, device

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(*operands: Any) -> Any:
            return getattr(self._fused, name)(*tree_map_only(Tensor, lambda x: x.to(self._device), operands))

        return run


def digest(results: Tensor | tuple[Tensor, ...]) -> str:
    """The first 16 hex digits of SHA-256 of the results' bits as f32, in which NaNs must be canonical."""
    found = hashlib.sha256()
    for x in results if isinstance(results, tuple) else (results,):
        found.update(x.to(torch.float32).contiguous().cpu().numpy().astype("<f4", copy=False).tobytes())
    return found.hexdigest()[:16]


SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 3.4e38, 1e-45, -100.0)


def numbers(seed: int, rows: int = 24, columns: int = 67) -> Tensor:
    """A deterministic table, f32 [rows, columns]. Some rows hold arbitrary bits, some hold numbers of
    ordinary size, and some hold special values.
    """
    k = torch.arange(rows * columns, dtype=torch.int64, device="cpu") + seed * 1_000_003
    words = ((k * 2654435761) ^ (k * 40503 << 7)) & 0xFFFFFFFF
    anything = canonical(((words ^ 0x80000000) - 0x80000000).to(torch.int32).view(torch.float32))
    ordinary = (words & 0xFFFFFF).to(torch.float32) * 2.0**-21 - 4.0
    table = torch.where((k // columns) % 3 == 0, anything, ordinary).reshape(rows, columns)
    table[1::6] *= 2.0**20
    table[2::6] *= 2.0**-130
    special = torch.tensor(SPECIAL, dtype=torch.float32, device="cpu")
    table[4, 3 : 3 + len(special)] = special
    table[5], table[7], table[8] = -torch.inf, -0.0, 0.0
    return table


WIDE = (41, 1031)
"""Rows and columns of the wide table, chosen for native/fused.cpp and fused_body.h.

Its 42,271 elements are more than two pieces of 2^14, and twice as many are more than one piece of 2^16. 41
rows are more than two pieces of 15 rows, and more than the 31 rows that column sums take at a time. 1,031
columns are more than a strip of 1,024 and more than four blocks of 256. Each of these divisions leaves a
remainder.
"""


MANY = 36864
"""Number of elements of a wide table that the tests of `emit` and `absorb` use. It is a multiple of 512 (64
blocks of 8), and more than two pieces of 2^14.
"""


@lru_cache(maxsize=4)
def wide(seed: int) -> Tensor:
    """`numbers` of size `WIDE`, limited to [-50, 50] and without NaN. So no NaN, infinity or huge number
    hides the other elements of a sum.

    The table is cached: callers must not write to it.
    """
    x = numbers(seed, *WIDE).clamp(-50.0, 50.0)
    return torch.where(x == x, x, 0.5)


NANS = (-(1 << 22), 0x7F800001, 0x7FFFFFFF, -1)
"""Bits of four NaNs that are not canonical: 0xffc00000, the signalling NaN 0x7f800001, 0x7fffffff and 0xffffffff."""


def _with_nans(x: Tensor) -> Tensor:
    """Set every 61st element of `x` to one of `NANS`, and return `x`."""
    places = x.view(torch.int32).view(-1)[::61]
    places.copy_(torch.tensor(NANS, dtype=torch.int32, device="cpu").repeat(len(places))[: len(places)])
    return x


def _mapped(function: Map, fused: Any) -> Any:
    return fused.map(function, numbers(1), numbers(2) if function >= Map.GELU_ERF_GRAD else None)


def _paired(operation: Pair, fused: Any) -> Any:
    """The results of an operation on two arrays, and on an array and a single element in either order. The
    single elements include 0, infinity and NaN.
    """
    x, y = numbers(1), numbers(2)
    y[9] = x[9]
    ones = (y[8, 0], y[7, 0], y[4, 3], y[4, 4], y[2, 2], y[1, 1])
    alone = [(x, one) for one in ones] + [(one, y) for one in ones]
    return tuple(fused.pair(operation, a, b) for a, b in ((x, y), *alone))


def _cell(fused: Any, rows: int = 24, size: int = 16) -> Any:
    """The results of a step of an LSTM, forward and backward."""
    kinds = [_table(seed, rows, size) for seed in range(1, 8)]
    gates = [torch.cat([_table(seed + k, rows, size) for k in range(4)], 1) for seed in (11, 21)]
    forward = [empty(rows, 4 * size), empty(rows, size), empty(rows, size)]
    backward = [empty(rows, 4 * size), empty(rows, size)]
    fused.lstm_cell((*gates, kinds[0]), forward)
    fused.lstm_cell_grad((*kinds[1:5], gates[0], *kinds[5:]), backward)
    return *forward, *backward


def _table(seed: int, rows: int, size: int) -> Tensor:
    return numbers(seed, max(rows, 10), max(size, 16))[:rows, :size].contiguous()


TOP = (1 - 2.0**-24) * 2.0**10
"""The largest number that is sent: larger ones are clamped to it."""


def _emitted(block: int, fused: Any) -> Any:
    """The results of `emit` for two groups of blocks: the message and the next feedback."""
    return fused.emit(tuple(_row(seed, 2 * 64 * block) for seed in (1, 2, 3)), block, 0.9, TOP)


def _absorbed(block: int, fused: Any, size: int = 0, lanes: int = 3) -> Any:
    """The result of `absorb` for two groups, or for `size` numbers.

    Some places of the messages coincide, and others lie outside their blocks. The exponents are of all kinds.
    """
    size = size or 2 * 64 * block
    messages = [_message(seed, size // block, block) for seed in range(lanes + 1)]
    return fused.absorb((_row(4, size), _row(5, size)), messages, (block, 12), (0.7, 3.0, 1.0))


def _row(seed: int, size: int) -> Tensor:
    return numbers(seed, 10 + size // 67).reshape(-1)[:size]


def _message(seed: int, blocks: int, block: int) -> list[Tensor]:
    k = torch.arange(blocks, dtype=torch.int64, device="cpu") + seed * 1_000_003
    words = (k * 2654435761 >> 7) & 0xFFFF
    places = (words % (block + 2) % 5).to(torch.uint8)  # few, so that they coincide
    places[::7] = 200
    exponents = words[::64].to(torch.int32) % 40 - 20
    extremes = torch.tensor((32767, -(2**31), 2**31 - 1), dtype=torch.int32, device="cpu")
    exponents[::5] = extremes.repeat(blocks)[: len(exponents[::5])]
    return [*([places] if block > 1 else []), (words >> 8).to(torch.uint8), exponents]


SCALARS = (0.001, 1e-8, 0.99, 0.9, 0.1, 0.999, 0.001)
TESTS: dict[str, Callable[[Any], Tensor | tuple[Tensor, ...]]] = {
    **{function.name: partial(_mapped, function) for function in Map},
    "softmax": lambda f: f.softmax(numbers(3), False),
    "safe_softmax": lambda f: f.softmax(numbers(3), True),
    "softmax_grad": lambda f: f.softmax_grad(numbers(3), numbers(4)),
    "log_softmax": lambda f: f.log_softmax(numbers(3)),
    "log_softmax_grad": lambda f: f.log_softmax_grad(numbers(3), numbers(4)),
    "sum_rows": lambda f: f.sum_rows(numbers(5)),
    "sum_columns": lambda f: f.sum_columns(numbers(5)[9:]),
    "layer_norm": lambda f: f.layer_norm(numbers(6), numbers(7)[1], numbers(8)[1], 1e-5),
    "layer_norm_grad": lambda f: f.layer_norm_grad(*_normalised(), numbers(7)[1]),
    "layer_norm_grad_gain": lambda f: f.layer_norm_grad_gain(*_normalised()),
    "adamw": lambda f: f.adamw((numbers(1), numbers(2), numbers(3), numbers(4)), SCALARS),
    "canonical": lambda f: f.canonical_in_place(_with_nans(numbers(1))),
    **{f"emit one of {block}": partial(_emitted, block) for block in (1, 8, 16, 32, 64)},
    **{f"absorb one of {block}": partial(_absorbed, block) for block in (1, 8, 16, 32, 64)},
    "wide emit": lambda f: f.emit(tuple(wide(k).view(-1)[:MANY] for k in (1, 2, 3)), 8, 0.9, TOP),
    "wide absorb": lambda f: _absorbed(8, f, MANY, 16),
}
CPU_TESTS: dict[str, Callable[[Any], Tensor | tuple[Tensor, ...]]] = {
    **{operation.name: partial(_paired, operation) for operation in Pair},
    "select": lambda f: f.select(numbers(1) < numbers(2), numbers(3), numbers(4)),
    "select_one": lambda f: (
        f.select(numbers(1) < 0, numbers(3)[4, 3], numbers(4)),
        f.select(numbers(1) < 0, numbers(4), numbers(3)[4, 4]),
    ),
    "sgd": lambda f: f.sgd((numbers(1), numbers(2)), 0.1, 0.01),
    "sgd_momentum": lambda f: f.sgd((numbers(1), numbers(2), numbers(3)), 0.1, 0.0, 0.9),
    "sgd_nesterov": lambda f: f.sgd((numbers(1), numbers(2), numbers(3)), 0.1, 0.01, 0.9, True),
    "scatter_sum": lambda f: f.scatter_sum(_index(), numbers(5)[9:], 9),
    "lstm": _cell,
}
"""Tests of functions that CUDA does not have."""
WIDE_TESTS: dict[str, Callable[[Any], Tensor | tuple[Tensor, ...]]] = {
    "wide map": lambda f: (f.map(Map.TANH, wide(1)), f.map(Map.SILU_GRAD, wide(1), wide(2))),
    "wide pair": lambda f: tuple(
        f.pair(operation, x, y)
        for operation in (Pair.SUB, Pair.LT)
        for x, y in ((wide(1), wide(2)), (wide(1), wide(2)[10, 9]), (wide(1)[10, 9], wide(2)))
    ),
    "wide select": lambda f: (
        f.select(wide(1) < wide(2), wide(3), wide(4)),
        f.select(wide(1) < 0, wide(3)[10, 9], wide(4)),
        f.select(wide(1) < 0, wide(4), wide(3)[10, 9]),
    ),
    "wide softmax": lambda f: f.softmax(wide(3), False),
    "wide softmax_grad": lambda f: f.softmax_grad(wide(3), wide(4)),
    "wide log_softmax": lambda f: f.log_softmax(wide(3)),
    "wide log_softmax_grad": lambda f: f.log_softmax_grad(wide(3), wide(4)),
    "wide sum_rows": lambda f: f.sum_rows(wide(1)),
    "wide sum_columns": lambda f: f.sum_columns(wide(1)),
    "wide layer_norm": lambda f: f.layer_norm(wide(1), wide(2)[10], wide(3)[10], 1e-5),
    "wide layer_norm_grad": lambda f: f.layer_norm_grad(*_wide_normalised(), wide(3)[10]),
    "wide layer_norm_grad_gain": lambda f: f.layer_norm_grad_gain(*_wide_normalised()),
    "wide adamw": lambda f: f.adamw((wide(1), wide(2), wide(3), wide(4).abs()), SCALARS),
    "wide sgd": lambda f: f.sgd((wide(1), wide(2), wide(3)), 0.1, 0.01, 0.9, True),
    "wide scatter_sum": lambda f: f.scatter_sum(_wide_index(), wide(1), 20),
    "wide lstm": lambda f: _cell(f, 130, 259),
    "wide canonical": lambda f: f.canonical_in_place(_with_nans(torch.cat((wide(1), wide(2))))),
}
"""Tests of tensors that the compiled library computes in several pieces.

CUDA divides the work differently.
"""


def _index() -> Tensor:
    """Indices for the rows `numbers(5)[9:]`: repeated, out of order and out of range, with gaps."""
    rows = [4, 4, 0, -1, 8, 9, 2, 4, 0, 8, 7, -(2**31), 2**31 - 1, 2, 1]
    return torch.tensor(rows, dtype=torch.int32, device="cpu")


def _wide_index() -> Tensor:
    """Indices from -2 to 20, one for each row of `wide`, to sum into twenty rows. Some are out of range."""
    return (torch.arange(WIDE[0], device="cpu") * 7919 % 23 - 2).to(torch.int32)


def _normalised() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return numbers(1), numbers(2), numbers(3)[:, :1].contiguous(), numbers(4)[:, 1:2].contiguous()


def _wide_normalised() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return wide(1), wide(2), wide(3)[:, :1].contiguous(), wide(4)[:, 1:2].contiguous()
