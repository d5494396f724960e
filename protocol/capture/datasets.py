"""The committed dataset and the batch that a step draws from it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from protocol.capture.errors import CaptureError, Problem
from protocol.numerics.types import DType, canonical
from protocol.program.builder import Builder, Value
from protocol.program.library import sampling

BATCH_STREAM = 0
"""Philox stream of the batch draw; other uses of randomness inside a step take other streams."""

COMMITTED = {torch.float32: DType.F32, torch.uint8: DType.U8, torch.int32: DType.I32, torch.int64: DType.I32}


def as_committed(t: Tensor) -> Tensor:
    """A copy on the CPU, contiguous, NaN canonical, int64 as i32."""
    whole = t.to(torch.int32) if t.dtype is torch.int64 else t
    return canonical(whole.detach().cpu()).clone(memory_format=torch.contiguous_format)


def committed(dataset: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are committed: f32, u8, or i32 in place of int64; one row per example.

    Raises `CaptureError` for other types, integers beyond 31 bits and tensors of different lengths.
    """
    problems = []
    if not dataset:
        raise CaptureError([Problem("the dataset is empty", "pass at least one tensor of examples by name")])
    rows = {t.shape[0] for t in dataset.values() if t.dim()}
    for name, t in dataset.items():
        if t.dtype not in COMMITTED:
            kinds = ", ".join(str(kind).removeprefix("torch.") for kind in COMMITTED)
            problems.append(Problem(f"dataset tensor {name} is {t.dtype}", f"convert it to one of {kinds}"))
        elif t.dtype is torch.int64 and t.numel() and (int(t.max()) >= 2**31 or int(t.min()) < -(2**31)):
            problems.append(Problem(f"dataset tensor {name} exceeds 32 bits", "renumber its values"))
        if not t.dim() or not t.numel():
            problems.append(
                Problem(f"dataset tensor {name} has shape {tuple(t.shape)}", "give it a first axis of rows")
            )
    if len(rows) > 1:
        problems.append(
            Problem(f"dataset tensors have {sorted(rows)} rows", "give all of them one row per example")
        )
    if problems:
        raise CaptureError(problems)
    return {name: as_committed(t) for name, t in dataset.items()}


def example_batch(dataset: Mapping[str, Tensor], batch_size: int) -> dict[str, Tensor]:
    """A batch as the objective sees it: of the committed types, but i32 as int64, which torch wants for labels."""
    batch = {}
    for name, t in dataset.items():
        dtype = torch.int64 if t.dtype is torch.int32 else t.dtype
        batch[name] = torch.zeros((batch_size, *t.shape[1:]), dtype=dtype)
    return batch


def draw(b: Builder, dataset: Mapping[str, Value], key: Value, step: Value, batch_size: int) -> Value:
    """i32 [B]: the rows of the dataset that this step sees."""
    rows = next(iter(dataset.values())).shape[0]
    index: Value = sampling.draw_batch.call(b, key, step, batch=batch_size, rows=rows, stream=BATCH_STREAM)
    return index
