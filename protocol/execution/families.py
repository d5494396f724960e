"""Which kind of work a program consists of: what a machine was measured at, family by family, tells how fast it is.

A family is what one kind of kernel runs. Which a program has is counted in `counting`, which computes with torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Family(StrEnum):
    """Products and convolutions by their kernels, all other library functions by theirs, and whatever has no kernel."""

    PRODUCTS = "products"
    CONVOLUTIONS = "convolutions"
    FUNCTIONS = "functions"
    PRIMITIVES = "primitives"


def speed(counted: Mapping[Family, int], measured: Mapping[Family, float]) -> float:
    """Operations a second of a program, whose families run one after the other at these operations a second."""
    seconds = sum(count / measured[family] for family, count in counted.items())
    return sum(counted.values()) / seconds
