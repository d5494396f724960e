"""The dataset as it is committed, and an example of the batch that the objective sees."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from protocol.capture.inputs.checks import require_dataset
from protocol.capture.types import as_committed, as_seen_by_torch


def committed(dataset: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the tensors as they are committed: f32, u8, or i32 in place of int64; one row per example.

    Raises `CaptureError` for what `require_dataset` refuses.
    """
    require_dataset(dataset)
    return {name: as_committed(t) for name, t in dataset.items()}


def example_batch(dataset: Mapping[str, Tensor], batch_size: int) -> dict[str, Tensor]:
    """Zeros in the types and shapes of a batch of the committed `dataset` as the objective sees it."""
    return {
        name: torch.zeros((batch_size, *t.shape[1:]), dtype=as_seen_by_torch(t.dtype))
        for name, t in dataset.items()
    }
