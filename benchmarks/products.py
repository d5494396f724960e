"""Compares exact products with float32 products, for the shapes of an 11M GPT's step. Each shape is measured
with 13 x 13, 20 x 13 and 20 x 20 bits (`PAIRS`), which are the bits of the two operands.
"""

from __future__ import annotations

import torch

from benchmarks.measure import Row, interleaved, ratio_row
from protocol.numerics.contract import contract
from protocol.numerics.kernels.dispatch import kernel_for

# (name, batch, M, N, K); row-major unless a name says otherwise: 2,048 tokens of width 384, six heads.
SHAPES = (
    ("queries, keys and values", 1, 2048, 1152, 384),
    ("projection", 1, 2048, 384, 384),
    ("hidden layer", 1, 2048, 1536, 384),
    ("out of the hidden layer", 1, 2048, 384, 1536),
    ("head", 1, 2048, 256, 384),
    ("weight gradient, transposed", 1, 1536, 384, 2048),
    ("scores", 48, 256, 256, 64),
    ("mixing", 48, 256, 64, 256),
)
PAIRS = ((13, 13), (20, 13), (20, 20))


def rows() -> list[Row]:
    """Rows with the ratio to `torch.matmul` in float32 for every shape and pair."""
    found = []
    for name, batch, m, n, k in SHAPES:
        g = torch.Generator().manual_seed(0)
        x, y = torch.randn(batch, m, k, generator=g), torch.randn(batch, n, k, generator=g)
        if "transposed" in name:
            x, y = (t.mT.contiguous().mT for t in (x, y))
        for px, py in PAIRS:
            ratios = interleaved(
                lambda x=x, y=y, px=px, py=py: contract(x, y, px, py),  # type: ignore[misc]
                lambda x=x, y=y: torch.matmul(x, y.mT),  # type: ignore[misc]
                rounds=15,
            )
            kernel = kernel_for(x.device, px, py).name
            what = f"{px} x {py} bits ({kernel}) / float32: {name}, {batch} x {m} x {n} x {k}"
            found.append(ratio_row(what, ratios))
    return found
