"""Refusals of `capture`'s arguments: counts, the dataset, the model.

Functions named `require_…` raise `CaptureError`; the others return the `Problem` or the note.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.inputs import python_state
from protocol.capture.inputs.model import tensors_of
from protocol.capture.inputs.python_state import PythonState
from protocol.capture.types import PROGRAM_TYPES, fits, type_name, type_names

DATASET = (
    "pass a dict of tensors by name, each with one row per example, as in {'x': inputs, 'y': labels}, or a dataset of "
    "such items"
)


def require_code(model: Any, objective: Any) -> None:
    """Refuse the arguments in three cases: the model, or a part of it, is not a module of Python code; a
    layer's tensors are not initialised; or the objective cannot be called with a model and a batch.
    """
    if not isinstance(model, nn.Module):
        what = f"the model is {_kind(model)}"
        raise CaptureError([Problem(what, "pass a torch.nn.Module")])
    problems = []
    compiled: list[str] = []
    for name, module in model.named_modules():
        place = f"module {name}" if name else "the model"
        if any(not outer or name.startswith(f"{outer}.") for outer in compiled):
            continue
        if isinstance(module, torch.jit.ScriptModule):
            compiled.append(name)
            remedy = "pass the module that it was made of; what TorchScript has compiled cannot be traced"
            problems.append(Problem(f"{place} is a {type(module).__name__}", remedy))
        elif any(map(is_lazy, _own(module))):
            remedy = (
                "run the model once on a batch before its optimiser is built, or say the sizes of its layers"
            )
            problems.append(
                Problem(f"{place}, {type(module).__name__}, has no tensors before its first call", remedy)
            )
    if not callable(objective):
        what = f"the objective is {_kind(objective)}"
        problems.append(Problem(what, "pass a function of the model and a batch that returns the loss"))
    elif not _takes_two(objective):
        what = f"the objective {getattr(objective, '__name__', type(objective).__name__)} does not take two arguments"
        problems.append(Problem(what, "let it take the model and the batch, a dict of tensors"))
    raise_any(problems)


def require_counts(**counts: int) -> None:
    """Refuse a count that is not an integer from 1 to 2^31 - 1."""
    raise_any(
        Problem(f"{name}={count!r}", "give a whole number from 1 to 2147483647")
        for name, count in counts.items()
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 2**31
    )


def require_equal_parts(batch_size: int, micro_batches: int) -> None:
    """Refuse a batch that cannot be divided equally, because the mean of the parts' means would then not be
    the batch's mean.
    """
    if batch_size % micro_batches:
        what = f"a batch of {batch_size} rows in {micro_batches} micro-batches"
        raise CaptureError([Problem(what, "give a number of micro-batches that divides the batch size")])


def require_enough_rows(dataset: Mapping[str, Tensor], batch_size: int, replacement: bool) -> None:
    """Refuse a batch larger than the dataset if rows are drawn without replacement."""
    rows = len(next(iter(dataset.values())))
    if not replacement and batch_size > rows:
        what = f"a batch of {batch_size} rows without replacement, of a dataset of {rows}"
        raise CaptureError([Problem(what, "give a smaller batch, or draw with replacement")])


def require_dataset(dataset: Mapping[str, Tensor]) -> None:
    """Refuse a dataset that is not a mapping or is empty, names that are empty or not text, values that are
    not dense tensors in memory, unsupported types, integers beyond i32, and tensors that are empty, have no
    axes or differ in length.
    """
    if not isinstance(dataset, Mapping):
        raise CaptureError([Problem(f"the dataset is {_kind(dataset)}", DATASET)])
    if not dataset:
        raise CaptureError([Problem("the dataset is empty", "pass at least one tensor of examples by name")])
    raise_any(
        Problem(f"dataset tensor {name!r} is {what}", remedy)
        for name, t in dataset.items()
        for what, remedy in _not_plain(t)
    )
    problems = [
        Problem(
            f"the dataset has a tensor under {name!r}, {_kind(name)}",
            "give each tensor its own name, text",
        )
        for name in dataset
        if not isinstance(name, str) or not name
    ]
    rows = {t.shape[0] for t in dataset.values() if t.dim()}
    for name, t in dataset.items():
        if t.dtype not in PROGRAM_TYPES:
            remedy = f"convert it to one of {type_names(PROGRAM_TYPES)}, or a narrower one"
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


def other_names(number: int, item: Collection[str], first: Collection[str]) -> Problem:
    """The refusal for a dataset item whose names differ from the first item's."""
    has, had = (", ".join(names) or "nothing" for names in (item, first))
    what = f"item {number} of the dataset has {has}, the first one {had}"
    return Problem(what, "give all items the same names, in the same number")


def other_shape(number: int, name: str, shape: torch.Size, first: torch.Size) -> Problem:
    """The refusal for a dataset item whose value under `name` has a different shape from the first item's."""
    shapes = f"shape {tuple(shape)}, in the first item {tuple(first)}"
    remedy = "pad all rows to one length, and add a mask that says which elements count"
    return Problem(f"item {number} of the dataset has {name!r} of {shapes}", remedy)


def other_type(number: int, name: str, dtype: torch.dtype, first: torch.dtype) -> Problem:
    """The refusal for a dataset item whose value under `name` has a different type from the first item's."""
    what = f"item {number} of the dataset has {name!r} of type {type_name(dtype)}, in the first item"
    return Problem(f"{what} {type_name(first)}", "give it one type in all items, such as float(value)")


def drawn_again(number: int, name: str) -> Problem:
    """The refusal for a dataset item whose value under `name` differs when the item is read again."""
    what = f"item {number} of the dataset has other values of {name!r} when it is read again"
    remedy = (
        "leave random transforms out of the dataset, whose items are committed once: draw in the objective"
    )
    return Problem(what, remedy)


def item_raises(number: int, error: Exception) -> Problem:
    """The refusal for a dataset that raises an error for an item, although the item's number is below the
    dataset's length.
    """
    what = f"item {number} of the dataset raises {type(error).__name__}: {error}"
    remedy = (
        "let dataset[k] give item k for each k below len(dataset); pass a table's columns by name, as arrays"
    )
    return Problem(what, remedy, cause=error)


def no_item(number: int, item: Any) -> Problem:
    """The refusal for a dataset item that is neither a dict nor a tuple or list."""
    what = f"item {number} of the dataset is of type {type(item).__name__}"
    return Problem(what, "let items be dicts or tuples of tensors")


def no_number(number: int, name: str, value: Any) -> Problem:
    """The refusal for a dataset item whose value under `name` is not numeric."""
    what = f"item {number} of the dataset has {name!r} of type {type(value).__name__}, which is not a number"
    return Problem(what, "leave it out, or turn it into numbers")


def require_types(model: nn.Module) -> None:
    """Refuse floats that are not f32, other unsupported types, integers beyond i32, and tensors that are
    empty, sparse, nested or on the meta device.

    An int64 buffer, such as a counter, is i32 in a program.
    """
    problems = []
    for name, t in tensors_of(model):
        kind = f"{name} is {type_name(t.dtype)}"
        if unlike := _not_plain(t):
            problems += [Problem(f"{name} is {what}", remedy) for what, remedy in unlike]
        elif t.is_floating_point() and t.dtype != torch.float32:
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
    """Refuse tensors whose ranges of memory overlap, since an update in place may change both. Refuse
    parameters with hooks on their gradients, since torch runs the hooks after the traced part.
    """
    problems = []
    end, before = 0, ""
    for first, last, name in sorted(_span(t, name) for name, t in tensors_of(model) if _has_memory(t)):
        if first < end:
            remedy = (
                "give each its own memory with .clone(), or tie them by using one parameter in both places"
            )
            problems.append(Problem(f"{before} and {name} share memory", remedy))
        end, before = max((end, before), (last, name))
    problems += hooks_on_gradients(dict(model.named_parameters()))
    raise_any(problems)


def hooks_on_gradients(parameters: Mapping[str, Tensor]) -> Iterator[Problem]:
    """Yields a refusal for each of the `parameters` that has a hook on its gradient."""
    remedy = "remove it, and change the gradient in the model's or the objective's own operations"
    for name, p in parameters.items():
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            yield Problem(f"parameter {name} has a hook on its gradient", remedy)


def not_watched(kept: PythonState) -> Iterator[str]:
    """Yields a note if there are too many Python objects to compare all of them between steps."""
    if kept.unwatched:
        yield (
            f"model and objective keep more than {python_state.MOST_OBJECTS:,} Python objects: those from "
            f"{kept.unwatched} on are not watched, and what a step changes in them is not seen"
        )


def _kind(value: Any) -> str:
    """A description of a value, for a message."""
    return "None" if value is None else f"of type {type(value).__name__}"


def _own(module: nn.Module) -> list[Tensor]:
    return [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None]


def _takes_two(function: Any) -> bool:
    """Whether a function accepts two arguments; true if its signature is not available."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _not_plain(t: Any) -> list[tuple[str, str]]:
    """A description and a remedy if `t` is not a dense tensor with elements in memory; otherwise empty."""
    if not isinstance(t, Tensor):
        return [(_kind(t), "pass torch.tensor(...) or torch.from_numpy(...) of it")]
    if t.is_nested:
        return [("a nested tensor", "pad its rows to one length: .to_padded_tensor(0.0)")]
    if t.layout is not torch.strided:
        layout = str(t.layout).removeprefix("torch.")
        return [
            (f"a sparse tensor ({layout})", "make it dense with .to_dense(); no program has sparse tensors")
        ]
    if t.is_meta:
        return [
            ("on the meta device, without elements", "make it on the CPU, as with .to_empty(device='cpu')")
        ]
    return []


def _has_memory(t: Tensor) -> bool:
    return not _not_plain(t) and bool(t.numel())


def _span(t: Tensor, name: str) -> tuple[int, int, str]:
    """The first address of a tensor's memory, the address after its end, and the name, for sorting."""
    reach = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride()))
    return t.data_ptr(), t.data_ptr() + (reach + 1) * t.element_size(), name
