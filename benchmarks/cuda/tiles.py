"""Tiles of the Triton product beside the one that it takes: what its tile sizes should be."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.cuda.cells import Cells
from benchmarks.cuda.times import PAIRS, SHAPES, Shape, operands, speed
from protocol.numerics.cuda.product import TritonInt8

TILES = ((64, 64), (128, 64), (64, 128), (128, 128), (256, 64))
"""Rows and columns. What does not fit into registers or shared memory is slow or an error."""


def cells(device: torch.device) -> Cells:
    """TFLOP/s of every tile, shape and pair of widths, and whether its bits are those of the tile that is taken."""
    if device.type != "cuda":
        yield "tiles", (lambda: "left out: Triton's interpreter says nothing about speed")
        return
    for shape in SHAPES[:4]:
        for px, py in PAIRS:
            for tile in TILES:
                name = f"{tile[0]} x {tile[1]}: {px} x {py} bits, {shape[0]}, {'x'.join(map(str, shape[1:]))}"
                yield name, partial(_speed, device, shape, px, py, tile)


def _speed(device: torch.device, shape: Shape, px: int, py: int, tile: tuple[int, int]) -> dict[str, object]:
    _, batch, m, n, k = shape
    x, y = operands(device, batch, m, n, k)
    taken, tried = TritonInt8(), TritonInt8(tile)
    same = torch.equal(tried.contract(x, y, px, py), taken.contract(x, y, px, py))
    row = speed(device, "", partial(tried.contract, x, y, px, py), 2 * batch * m * n * k)
    return {"same_bits": same, "speed": row.value, "middle half": row.spread}
