"""What the libraries need to be imported here."""

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
    """On PyPI torchvision's compiled part is CUDA's: without CUDA its operators are missing, and it is not imported,
    nor is what imports it. None of the suite's models calls them.
    """
    if find_spec("torchvision") is None or torch.cuda.is_available():
        return ()
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    return (library,)
