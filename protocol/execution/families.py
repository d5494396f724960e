"""The kinds of work in a program: from a machine's measurement by family follows its speed.

A family is what one kind of kernel runs. `counting`, which computes with torch, counts the families of a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Family(StrEnum):
    """Products and convolutions by their kernels, all other library functions by theirs, and the rest without a
    kernel.
    """

    PRODUCTS = "products"
    CONVOLUTIONS = "convolutions"
    FUNCTIONS = "functions"
    PRIMITIVES = "primitives"


def speed(counted: Mapping[Family, int], measured: Mapping[Family, float]) -> float:
    """Operations a second of a program whose families run one after the other at these speeds."""
    seconds = sum(count / measured[family] for family, count in counted.items())
    return sum(counted.values()) / seconds
