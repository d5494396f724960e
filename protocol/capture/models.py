"""What must hold of a submitter's model for one traced step to say what every step does; examined, never changed.

Types that a program has, tensors that do not share memory, nothing that runs outside the step (hooks of parameters),
and nothing that differs from step to step but tensors (numbers kept by modules, Python's random ones).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from protocol.capture.errors import CaptureError, Problem
from protocol.capture.lowering import DTYPES


def tensors_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters, then buffers, every one once and by its first name."""
    return [*model.named_parameters(), *model.named_buffers()]


def places(model: nn.Module) -> dict[str, str]:
    """Where modules keep tensors, by dotted path, and which of `tensors_of` is there.

    A tied tensor has several places; a module that stands in the model twice has its places once, so that what is put
    there for a while can be taken away again.
    """
    names = {id(t): name for name, t in tensors_of(model)}
    return {
        f"{path}.{slot}" if path else slot: names[id(t)]
        for path, module in model.named_modules()
        for slot, t in (*module._parameters.items(), *module._buffers.items())
        if t is not None
    }


def require_types(model: nn.Module) -> None:
    """Raise `CaptureError` for parameters and float buffers that are not f32, integer buffers that i32 cannot hold, and
    tensors without elements.

    int64 buffers, such as counters, are i32 in a program.
    """
    problems = []
    for name, t in tensors_of(model):
        kind = f"{name} is {str(t.dtype).removeprefix('torch.')}"
        if t.is_floating_point() and t.dtype != torch.float32:
            remedy = "call model.float() first; other types are chosen by the arithmetic, not the model"
            problems.append(Problem(kind, f"train in float32: {remedy}"))
        elif t.dtype not in DTYPES:
            problems.append(Problem(kind, "keep it in float32, int64, int32, uint8 or bool"))
        elif not t.numel():
            problems.append(
                Problem(
                    f"{name} has shape {tuple(t.shape)}", "remove it: it holds nothing, and no program can"
                )
            )
        elif not fits(t):
            problems.append(Problem(f"{name} exceeds 32 bits", "renumber its values, or keep it in float32"))
    if problems:
        raise CaptureError(problems)


def require_plain(model: nn.Module) -> None:
    """Raise `CaptureError` for tensors that share memory, as an update in place would change both, and for parameters
    with hooks, which torch runs after the gradient that is traced."""
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
    if problems:
        raise CaptureError(problems)


@contextmanager
def repeatable(model: nn.Module) -> Iterator[None]:
    """Raise `CaptureError` if what runs inside draws from Python's `random`, or changes a number that a module keeps:
    the next step would be another one than the step that was traced."""
    numbers, generator = _numbers(model), random.getstate()
    yield
    problems = [
        Problem(
            f"{name} changes from {numbers[name]} to {now} in a step",
            "keep it as a buffer of the model, written by tensor operations; if this only prepares the model, run it "
            "on a batch before capturing",
        )
        for name, now in _numbers(model).items()
        if name in numbers and now != numbers[name]
    ]
    if random.getstate() != generator:
        remedy = "draw them when the data are made; of random numbers a step has the batch draw and dropout's masks"
        problems.append(Problem("the step draws from Python's random numbers", remedy))
    if problems:
        raise CaptureError(problems)


def fits(t: Tensor) -> bool:
    """Whether i32 holds an int64 tensor; other types travel as they are."""
    return t.dtype is not torch.int64 or not t.numel() or -(2**31) <= int(t.min()) <= int(t.max()) < 2**31


def _span(t: Tensor, name: str) -> tuple[int, int, str]:
    """First address and the one after the last."""
    reach = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride()))
    return t.data_ptr(), t.data_ptr() + (reach + 1) * t.element_size(), name


def _numbers(model: nn.Module) -> dict[str, int | float]:
    """Attributes of modules that are Python numbers, by dotted path."""
    return {
        f"{path}.{key}" if path else key: value
        for path, module in model.named_modules()
        for key, value in vars(module).items()
        if type(value) in (int, float)
    }
