"""Torch code for operations without a rule, by topic. A new one is a function with `@expands(overload, …)`."""

from protocol.capture.expansion.ops import (
    bags,
    elementary,
    gamma,
    making,
    ordering,
    padding,
    pointwise,
    products,
    quantisation,
    random,
    reductions,
    resizing,
    scattering,
    strides,
    volumes,
    windows,
)

__all__ = [
    "bags",
    "elementary",
    "gamma",
    "making",
    "ordering",
    "padding",
    "pointwise",
    "products",
    "quantisation",
    "random",
    "reductions",
    "resizing",
    "scattering",
    "strides",
    "volumes",
    "windows",
]
