"""The rules of `lowering`, one file per family of ATen operations. Importing this package registers them all."""

from protocol.program.capture.ops import (
    activations,
    contractions,
    creation,
    elementary,
    embedding,
    logic,
    losses,
    movement,
    normalisation,
    pointwise,
    rectifiers,
    reductions,
    scatter,
    views,
)

__all__ = [
    "activations",
    "contractions",
    "creation",
    "elementary",
    "embedding",
    "logic",
    "losses",
    "movement",
    "normalisation",
    "pointwise",
    "rectifiers",
    "reductions",
    "scatter",
    "views",
]
