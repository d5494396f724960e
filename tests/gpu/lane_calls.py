"""Calls of `lane_emit` and `lane_absorb` with edge cases, which must have the same bits everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from protocol.numerics.kernels.fused import MOST_LANES, SHARED
from protocol.program.library.function import Attribute

MOST = 4
"""The default `most_exponent` of the calls. `lane_emit` clamps sent numbers to magnitudes below
2^`most_exponent`, and `lane_absorb` clamps exponents to `most_exponent`.
"""
CUT, SMALL, WRAPPING = (MOST - 1, MOST, MOST + 1), (-95, -142, -160, -400), (-(2**31), 6 - 2**31, 7 - 2**31)
EXPONENTS = (0, *CUT, *SMALL, *WRAPPING, 32767, 2**31 - 1)
"""Exponents: an ordinary one; some around `MOST`, where exponents are clamped; small ones, including those of
subnormal numbers and of zeros; some around the limit below which subtracting 7 wraps; and large ones.
"""
COUNTS = (1.0, 0.0, 0.5, -3.0, 1e38, math.inf, math.nan)


@dataclass(frozen=True)
class Call:
    """A call of a function of the catalogue."""

    name: str
    function: str
    attributes: Mapping[str, Attribute]
    operands: tuple[Tensor, ...]


def calls(block: int) -> Iterator[Call]:
    """All calls with one block size."""
    for most, decay in ((MOST, 1.0), (-20, 0.9), (128, 0.0)):
        attributes = {"block": block, "decay": decay, "most_exponent": most}
        yield Call(f"emit below 2^{most}", "lane_emit", attributes, changes(block, most))
    for lanes in range(1, MOST_LANES + 1):
        counts = [COUNTS[(k + lanes) % 2] for k in range(lanes)]  # every second lane is late
        yield _absorbing(f"{lanes} lanes", block, lane=lanes // 2, counts=counts)
    for lane in (-1, 0, 3, MOST_LANES, 2**31 - 1):
        yield _absorbing(f"as lane {lane}", block, lane=lane, counts=(1.0, 1.0, 1.0))
    yield _absorbing("nobody", block, lane=1, counts=(0.0, 0.0))
    for count in COUNTS[2:]:
        yield _absorbing(f"a count of {count}", block, lane=1, counts=(1.0, count))
    for most in (-94, -20, 128):
        yield _absorbing(f"cut at 2^{most}", block, lane=0, counts=(0.0, 1.0), most=most)


def changes(block: int, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Operands of `lane_emit` (base, local, feedback). They have at least one group of each kind of number,
    such as zeros, NaN or subnormal numbers, and more groups than one program of the kernel handles.
    """
    g = torch.Generator().manual_seed(block)
    shape = (SHARED, block)
    normal = torch.randn((10, *shape), generator=g)
    signs = torch.randint(0, 2, shape, generator=g) * 2.0 - 1.0
    few = torch.randint(-3, 4, shape, generator=g).float()  # the largest occurs several times
    eighths = torch.arange(SHARED * block).reshape(shape) % 8192 - 4096.0  # halfway between 8-bit values
    specials = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, 3.4e38])
    spoilt = normal[0].clone()
    spoilt.view(-1)[:: max(block // 2, 1)][: len(specials)] = specials
    kinds = [
        *(normal[k] * 2.0**e for k, e in enumerate((0, most, most + 3, -100, -140))),
        signs,
        few,
        eighths * 2.0**-10,
        torch.zeros(shape),
        -torch.zeros(shape),
        torch.full(shape, 1e-45) * signs,
        torch.full(shape, 2.0**most if most < 128 else 3.4e38) * signs,
        spoilt,
        spoilt * 1000.0,
        torch.full(shape, math.nan),
    ]
    local = torch.cat([x.reshape(-1) for x in kinds]).repeat(5, 1)
    base, feedback = torch.zeros_like(local), torch.zeros_like(local)
    feedback[1], base[2], feedback[2] = torch.randn(3, local.shape[1], generator=g)
    base[3] = local[3]  # nothing has changed
    base[4, ::3] = math.inf  # minus an infinity, or NaN
    return base.view(-1), local.view(-1), feedback.view(-1)


def _absorbing(
    name: str, block: int, *, lane: int, counts: tuple[float, ...] | list[float], most: int = MOST
) -> Call:
    """A call of `lane_absorb` with more groups than a program handles. The exponents of its messages are
    mixed: some from `EXPONENTS`, some ordinary.
    """
    g = torch.Generator().manual_seed(len(counts))
    groups = 5 * len(EXPONENTS) if block == 1 else len(EXPONENTS)
    blocks = groups * SHARED
    size = blocks * block
    base, feedback = torch.randn(2, size, generator=g)
    base[::97], feedback[::89], feedback[1::89] = math.nan, math.inf, -0.0
    own = message(g, blocks, block)
    inbox = [(*message(g, blocks, block), torch.tensor(count)) for count in counts]
    cancelled = inbox[0][-3].to(torch.int32)
    if len(inbox) > 1:  # in half of the groups the values nearly cancel
        inbox[1][-3][: blocks // 2] = (-cancelled & 255).to(torch.uint8)[: blocks // 2]
        for a, b in zip(inbox[0][:-3], inbox[1][:-3]):
            b[: blocks // 2] = a[: blocks // 2]
        inbox[1][-2][:] = inbox[0][-2]
    operands = (base, feedback, torch.tensor(lane, dtype=torch.int32), *own, *(x for m in inbox for x in m))
    attributes = {"block": block, "rate": 0.7, "most_exponent": most}
    return Call(f"absorb, {name}", "lane_absorb", attributes, operands)


def message(g: torch.Generator, blocks: int, block: int) -> tuple[Tensor, ...]:
    """A message: indices, values and exponents; without indices if `block` is 1. Some indices are the same in
    all messages, and some may lie outside the block. Some values are 0. Exponents are from `EXPONENTS` or
    ordinary.
    """
    index = torch.randint(0, 3, (blocks,), generator=g, dtype=torch.uint8)
    index[::5] = torch.randint(0, 256, index[::5].shape, generator=g, dtype=torch.uint8)
    index[::7], index[1::7] = block - 1, min(block, 255)
    value = torch.randint(0, 256, (blocks,), generator=g, dtype=torch.uint8)
    value[::11] = 0
    exponents = torch.tensor(EXPONENTS, dtype=torch.int64).repeat(blocks // SHARED)[: blocks // SHARED]
    ordinary = torch.randint(-8, MOST + 3, exponents.shape, generator=g)
    rolled = torch.where(torch.rand(exponents.shape, generator=g) < 0.5, ordinary, exponents)
    return *([index] if block > 1 else []), value, rolled.to(torch.int32)
