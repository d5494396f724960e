"""Random compositions, forward and backward, are compared with torch in float64. For every fourth one, the
step also runs without kernels, from the bodies of its functions.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.unit.capture.compositions import composition
from tests.unit.capture.operations import by_capture, by_torch

TOLERANCE = 3e-3
"""Tolerated error, relative to the largest magnitude. A product of 13-bit operands adds an error of at most
1.2e-4.
"""


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_compositions_follow_torch(start: int) -> None:
    for seed in range(start, start + 20):
        _follows(seed)


@pytest.mark.heavy
@pytest.mark.parametrize("start", range(40, 2040, 25))
def test_many_compositions_follow_torch(start: int) -> None:
    for seed in range(start, start + 25):
        _follows(seed)


def _follows(seed: int) -> None:
    case = composition(seed)
    ours, theirs = by_capture(case, bodies=seed % 4 == 0), by_torch(case)
    for found, expected in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        _close(found.double(), expected.double(), f"{case} of {case.operands}")


def _close(found: Tensor, expected: Tensor, name: str) -> None:
    finite = expected[expected.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    torch.testing.assert_close(
        found,
        expected,
        rtol=TOLERANCE,
        atol=TOLERANCE * (largest + 0.3),
        equal_nan=True,
        msg=lambda message: f"{name}: {message}",
    )
