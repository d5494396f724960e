"""Functions that steps are made of: a body over primitives and a fused kernel each, with the same bits.

Where no compiled kernel may be used, most bodies are evaluated on tensors (`evaluate`); the others have torch code.

A program's call of one is an ordinary call: what it computes is fixed by its body. `hints` and `kernels` let the
loader of a program find the kernels again, by program id (see `function`).
"""

from protocol.program.library import (
    activations,
    adam,
    batch_norm,
    clipping,
    contractions,
    convolution,
    dropout,
    elementary,
    embedding,
    lanes,
    layer_norm,
    loss,
    pooling,
    recurrent,
    sampling,
    sgd,
    softmax,
    sums,
    units,
)
from protocol.program.library.attention import fusions
from protocol.program.library.function import CATALOGUE, Hint, LibraryFunction, hints, kernels, recognise

__all__ = [
    "CATALOGUE",
    "Hint",
    "LibraryFunction",
    "activations",
    "adam",
    "batch_norm",
    "clipping",
    "contractions",
    "convolution",
    "dropout",
    "elementary",
    "embedding",
    "fusions",
    "hints",
    "kernels",
    "lanes",
    "layer_norm",
    "loss",
    "pooling",
    "recognise",
    "recurrent",
    "sampling",
    "sgd",
    "softmax",
    "sums",
    "units",
]
