"""Compares tile sizes of the Triton product by the time of a GPT's whole step."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import torch

from benchmarks.cuda.cells import Cells
from benchmarks.cuda.times import STEP_ROUNDS, WARM, done, exact_step
from benchmarks.measure import middle, seconds
from protocol.numerics.cuda.product import TritonInt8, tile_of
from protocol.numerics.kernels import dispatch

WIDTHS = (13, 13)
TILES = (
    (tile_of(*WIDTHS), tile_of(20, 20)),
    ((128, 64), (64, 64)),
    ((64, 64), (64, 64)),
    ((128, 128), (128, 64)),
    ((128, 64), (64, 128)),
    ((128, 128), (128, 128)),
)
"""Pairs of tile sizes, each given as (rows, columns). The first size of a pair is for products of 13 x 13
bits, the second for products of more bits. The pair in use comes first.
"""


def cells(device: torch.device) -> Cells:
    """For each pair of tiles, the milliseconds of a step in a CUDA graph, and whether the step's bits equal
    those with the first pair.
    """
    if device.type != "cuda":
        yield "tiles", (lambda: "left out: Triton's interpreter says nothing about speed")
        return
    roots: list[str] = []
    for few, many in TILES:
        yield f"{few} for 13 x 13 bits, {many} for more", partial(_step, device, few, many, roots)


def _step(
    device: torch.device, few: tuple[int, int], many: tuple[int, int], roots: list[str]
) -> dict[str, object]:
    kernel = TritonInt8(lambda px, py: few if (px, py) == WIDTHS else many)
    others = [kernel if each.name == kernel.name else each for each in dispatch.KERNELS]
    dispatch._chosen.cache_clear()
    try:
        with patch.object(dispatch, "KERNELS", tuple(others)):
            step = exact_step(device, True)
            for _ in range(WARM):
                step()
            found, spread = middle([1e3 * seconds(done(device, step)) for _ in range(STEP_ROUNDS)])
    finally:
        dispatch._chosen.cache_clear()
    roots.append(step.root)
    return {"ms": round(found, 3), "middle half": spread, "same_bits": roots[-1] == roots[0]}
