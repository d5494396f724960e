"""Families: kinds of work in a program. A machine's speed for a program follows from its speed in each
family.

A family is the work of one kind of kernel, or the work that is done without a kernel. `counting`, which needs
torch, counts a program's operations by family.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Family(StrEnum):
    """A kind of work: products, convolutions, other library functions with a kernel, or work without a kernel."""

    PRODUCTS = "products"
    CONVOLUTIONS = "convolutions"
    FUNCTIONS = "functions"
    PRIMITIVES = "primitives"


def speed(counted: Mapping[Family, int], measured: Mapping[Family, float]) -> float:
    """Operations a second of a program with these counts, if its families run one after the other at the
    measured speeds.
    """
    seconds = sum(count / measured[family] for family, count in counted.items())
    return sum(counted.values()) / seconds
