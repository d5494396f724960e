"""Preparations for importing the libraries."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@cache
def prepared() -> tuple[torch.library.Library, ...]:
    """Define torchvision's missing operators on a machine without CUDA.

    PyPI's torchvision is compiled for CUDA. Without CUDA, its operators are missing, and importing
    torchvision or a library that uses it fails. No model of the suite calls these operators.
    """
    if find_spec("torchvision") is None or torch.cuda.is_available():
        return ()
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    return (library,)
