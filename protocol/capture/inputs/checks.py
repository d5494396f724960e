"""What `capture` refuses of its arguments: counts, the dataset, the model. Every function raises `CaptureError`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.inputs.model import tensors_of
from protocol.capture.types import DATASET_TYPES, PROGRAM_TYPES, fits, type_name, type_names


def require_counts(**counts: int) -> None:
    """Refuse a count that is no integer from 1 to 2^31 - 1."""
    raise_any(
        Problem(f"{name}={count!r}", "give a whole number from 1 to 2147483647")
        for name, count in counts.items()
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 2**31
    )


def require_equal_parts(batch_size: int, micro_batches: int) -> None:
    """Refuse a batch that cannot be divided into equal parts, for which a mean of means is not the batch's mean."""
    if batch_size % micro_batches:
        what = f"a batch of {batch_size} rows in {micro_batches} micro-batches"
        raise CaptureError([Problem(what, "give a number of micro-batches that divides the batch size")])


def require_dataset(dataset: Mapping[str, Tensor]) -> None:
    """Refuse an empty dataset, types that it may not have, integers beyond i32, and tensors of different lengths."""
    if not dataset:
        raise CaptureError([Problem("the dataset is empty", "pass at least one tensor of examples by name")])
    problems = []
    rows = {t.shape[0] for t in dataset.values() if t.dim()}
    for name, t in dataset.items():
        if t.dtype not in DATASET_TYPES:
            remedy = f"convert it to one of {type_names(DATASET_TYPES)}"
            problems.append(Problem(f"dataset tensor {name} is {t.dtype}", remedy))
        elif not fits(t):
            problems.append(Problem(f"dataset tensor {name} exceeds 32 bits", "renumber its values"))
        if not t.dim() or not t.numel():
            what = f"dataset tensor {name} has shape {tuple(t.shape)}"
            problems.append(Problem(what, "give it a first axis of rows"))
    if len(rows) > 1:
        what = f"dataset tensors have {sorted(rows)} rows"
        problems.append(Problem(what, "give all of them one row per example"))
    raise_any(problems)


def require_types(model: nn.Module) -> None:
    """Refuse parameters and float buffers that are not f32, integer buffers beyond i32, and tensors without elements.

    An int64 buffer, such as a counter, is i32 in a program.
    """
    problems = []
    for name, t in tensors_of(model):
        kind = f"{name} is {type_name(t.dtype)}"
        if t.is_floating_point() and t.dtype != torch.float32:
            remedy = "call model.float() first; other types are chosen by the arithmetic, not the model"
            problems.append(Problem(kind, f"train in float32: {remedy}"))
        elif t.dtype not in PROGRAM_TYPES:
            problems.append(Problem(kind, "keep it in float32, int64, int32, uint8 or bool"))
        elif not t.numel():
            what = f"{name} has shape {tuple(t.shape)}"
            problems.append(Problem(what, "remove it: it holds nothing, and no program can"))
        elif not fits(t):
            problems.append(Problem(f"{name} exceeds 32 bits", "renumber its values, or keep it in float32"))
    raise_any(problems)


def require_separate_memory_and_no_hooks(model: nn.Module) -> None:
    """Refuse tensors that share memory, since an update in place would change both, and parameters with hooks, which
    torch runs after the gradient that is traced."""
    problems = []
    end, before = 0, ""
    for first, last, name in sorted(_span(t, name) for name, t in tensors_of(model) if t.numel()):
        if first < end:
            remedy = (
                "give each memory of its own with .clone(), or tie them by using one parameter in both places"
            )
            problems.append(Problem(f"{before} and {name} share memory", remedy))
        end, before = max((end, before), (last, name))
    for name, p in model.named_parameters():
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            remedy = "remove it, and change the gradient in the model's or the objective's own operations"
            problems.append(Problem(f"parameter {name} has a hook on its gradient", remedy))
    raise_any(problems)


def _span(t: Tensor, name: str) -> tuple[int, int, str]:
    """The first address of a tensor and the one after its last."""
    reach = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride()))
    return t.data_ptr(), t.data_ptr() + (reach + 1) * t.element_size(), name
