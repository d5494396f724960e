"""The library of functions for steps. Each has a body of primitives and calls, and a kernel that gives the
same bits.

If no compiled code may be used, some kernels evaluate the body on tensors (`evaluate`); the others are
written in torch.

In a program, a library function is an ordinary call, and its body defines the results. Code that loads a
program uses `hints` and `kernels` to find the kernels by program id (see `function`).
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
