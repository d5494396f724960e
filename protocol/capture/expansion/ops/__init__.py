"""Torch code for operations without a rule, by topic. A new one is a function with `@expands(overload, …)`."""

from protocol.capture.expansion.ops import (
    elementary,
    layouts,
    making,
    ordering,
    padding,
    pointwise,
    products,
    random,
    reductions,
    resizing,
    scattering,
    views,
    volumes,
    windows,
)

__all__ = [
    "elementary",
    "layouts",
    "making",
    "ordering",
    "padding",
    "pointwise",
    "products",
    "random",
    "reductions",
    "resizing",
    "scattering",
    "views",
    "volumes",
    "windows",
]
