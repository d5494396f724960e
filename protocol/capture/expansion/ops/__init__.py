"""Torch code for operations without a rule, by topic. Each is a function with the decorator
`@expands(overload, …)`.
"""

from protocol.capture.expansion.ops import (
    bags,
    elementary,
    gamma,
    layouts,
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
    "layouts",
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
