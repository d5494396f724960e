"""Compares exact products with RepDL, a public library with a similar aim, whose products add in a fixed
order.

Without RepDL (`pip install` of https://github.com/microsoft/RepDL) there are no rows. Nothing else needs it.
"""

from __future__ import annotations

import importlib
import importlib.util

import torch

from benchmarks.measure import Row, ratio_row, side_by_side
from benchmarks.products import SHAPES
from protocol.numerics.contract import contract

ROUNDS = 5
PACKAGE = "repdl"


def rows() -> list[Row]:
    """Rows that compare RepDL with float32 and with exact products of 13 x 13 bits, for the shapes of
    `products` that are neither batched nor transposed.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        return []
    ops = importlib.import_module(f"{PACKAGE}.ops")
    found = []
    for name, batch, m, n, k in SHAPES:
        if batch != 1 or "transposed" in name:
            continue
        g = torch.Generator().manual_seed(0)
        x, y = torch.randn(m, k, generator=g), torch.randn(n, k, generator=g)
        ratios = side_by_side(
            lambda x=x, y=y: ops.mm(x, y, transB=True),  # type: ignore[misc]
            {
                "float32": lambda x=x, y=y: torch.matmul(x, y.mT),  # type: ignore[misc]
                "exact, 13 x 13 bits": lambda x=x, y=y: contract(x, y, 13, 13),  # type: ignore[misc]
            },
            ROUNDS,
        )
        found += [ratio_row(f"RepDL / {other}: {name}, {m} x {n} x {k}", r) for other, r in ratios.items()]
    return found
