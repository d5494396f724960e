"""The logarithm of the gamma function and its derivatives, by Stirling's series. A negative argument is first
reflected. If the argument is then too small for the series, the recurrence raises it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.capture.expansion.table import aten, expands

LOGARITHM = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""Stirling's coefficients of y^-1, y^-3, … for log gamma; the remainder is below 2e-8 for y >= 3."""
FIRST = (-1 / 12, 1 / 120, -1 / 252, 1 / 240)
"""Stirling's coefficients of y^-2, y^-4, … for digamma; the remainder is below 1e-9 for y >= 5."""
SECOND = (1 / 6, -1 / 30, 1 / 42, -1 / 30)
"""Stirling's coefficients of y^-3, y^-5, … for digamma's derivative; remainder below 1e-9 for y >= 5."""
STEPS, MORE_STEPS = 3, 5


@expands(aten.lgamma.default)
def log_gamma(x: Tensor) -> Tensor:
    """log |gamma(x)|. The absolute error is about 1e-6 where the result is near 0."""
    z = torch.where(x < 0, 1 - x, x)
    near = z < STEPS
    y = torch.where(near, z + STEPS, z)
    before = math.prod((z + k for k in range(1, STEPS)), start=z).log()
    found = (y - 0.5) * (y.log() - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + _series(y, LOGARITHM) / y
    found = torch.where(near, found - before, found)
    found = torch.where(x < 0, math.log(math.pi) - _sine(x).abs().log() - found, found)
    return torch.where(x.abs() == math.inf, math.inf, found)


@expands(aten.digamma.default)
def digamma(x: Tensor) -> Tensor:
    """The derivative of `log_gamma`; NaN at its poles below 0."""
    z = torch.where(x < 0, 1 - x, x)
    near = z < MORE_STEPS
    y = torch.where(near, z + MORE_STEPS, z)
    before = sum((1 / (z + k) for k in range(1, MORE_STEPS)), start=1 / z)
    found = y.log() - 0.5 / y + _series(y, FIRST) / (y * y)
    found = torch.where(near, found - before, found)
    turn = (math.pi * (x - x.floor())).cos() * math.pi / _sine(x)
    below = torch.where(x == x.floor(), math.nan, found - turn)
    return torch.where(x < 0, below, found)


@expands(aten.polygamma.default)
def polygamma(order: int, x: Tensor) -> Tensor:
    """`digamma` for order 0, its derivative for order 1. Raises `NotImplementedError` for higher orders."""
    if order == 0:
        return digamma(x)
    if order > 1:
        raise NotImplementedError("only the gradient of digamma")
    z = torch.where(x < 0, 1 - x, x)
    near = z < MORE_STEPS
    y = torch.where(near, z + MORE_STEPS, z)
    before = sum((1 / ((z + k) * (z + k)) for k in range(1, MORE_STEPS)), start=1 / (z * z))
    found = 1 / y + 0.5 / (y * y) + _series(y, SECOND) / (y * y * y)
    found = torch.where(near, found + before, found)
    sine = _sine(x)
    return torch.where(x < 0, math.pi**2 / (sine * sine) - found, found)


def _series(y: Tensor, factors: tuple[float, ...]) -> Tensor:
    """The polynomial in y^-2 with the coefficients `factors`."""
    square = 1 / (y * y)
    total = torch.full_like(y, factors[-1])
    for factor in reversed(factors[:-1]):
        total = total * square + factor
    return total


def _sine(x: Tensor) -> Tensor:
    """|sin(pi x)|, computed from the fractional part of x."""
    return (math.pi * (x - x.floor())).sin()
