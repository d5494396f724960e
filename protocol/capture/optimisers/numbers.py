"""Lets an optimiser compute with tensors in place of Python numbers while it is traced. This is needed
because its rate and step count are data, so `traced` passes them as tensors.

An optimiser's code may use such a number as a factor, as in `x.add_(y, alpha=rate)`, or call `math.sqrt` or
`min` with it. During the trace, these functions also accept tensors. Code that decides something by the value
of such a number is refused.
"""

from __future__ import annotations

import builtins
import functools
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from protocol.capture.errors import CaptureError
from protocol.capture.inputs.python_values import LIBRARIES
from protocol.capture.optimisers.checks import reads_numbers
from protocol.capture.tracing.sources import source_here

ENDS_IN_PLACE = "_"
LESS_EXACT = (torch.bfloat16, torch.float16)
DECIDING = ("__bool__", "__int__", "__float__", "__index__")
"""Methods of a traced tensor that need its value."""


def _of_several(function: Any) -> Any:
    """A function of two tensors, extended to any number of operands, some of which may be numbers."""

    def found(*given: Any) -> Any:
        numbers = given if len(given) > 1 else tuple(given[0])
        tensors = [x if isinstance(x, Tensor) else torch.full((), float(x)) for x in numbers]
        return functools.reduce(function, tensors)

    return found


OF_TENSORS = {
    math: {"sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log, "pow": torch.pow, "fabs": torch.abs},
    builtins: {"min": _of_several(torch.minimum), "max": _of_several(torch.maximum)},
}
"""Functions of numbers, by module, and their replacements for tensors."""


@contextmanager
def tensors_as_numbers(optimizer: Optimizer) -> Iterator[None]:
    """Let the step of `optimizer` in the `with` block compute with tensors in place of numbers."""
    with _functions_of_tensors(), _without_hashes(optimizer), _Factors():
        yield


@contextmanager
def _without_hashes(optimizer: Optimizer) -> Iterator[None]:
    """Inside the context, refuse to hash a tensor without axes. It may stand for a number, and a set or dict
    of numbers would not find it. A parameter may be hashed, as a key of the state, and torch's own code may
    hash any tensor.
    """
    plain = Tensor.__hash__

    def hashed(t: Tensor) -> Any:
        by_torch = sys._getframe(1).f_code.co_filename.startswith(LIBRARIES)
        if not by_torch and not isinstance(t, nn.Parameter) and t.dim() == 0:
            raise CaptureError([reads_numbers(optimizer, source_here())])
        return plain(t)  # type: ignore[no-untyped-call]

    Tensor.__hash__ = hashed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.__hash__ = plain  # type: ignore[method-assign]


class _Factors(TorchFunctionMode):
    """While active, torch functions accept a tensor as a factor, as in `x.add_(y, alpha=rate)`.

    `x.item()` returns a tensor. Code that asks for bfloat16 or float16 computes in float32, since programs
    have no other floats.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        less_exact = any(_is_less_exact(x) for x in tree_leaves((args, kwargs)))
        args, kwargs = tree_map(_in_float32, (args, dict(kwargs or {})))
        name = getattr(func, "__name__", "").rstrip(ENDS_IN_PLACE)
        if name == "item" and sys._getframe(1).f_code.co_name not in DECIDING:
            return args[0].view(())
        if name in ("bfloat16", "half") or (name in ("to", "type") and less_exact):
            return args[0].to(torch.float32, copy=True)  # code may write into the conversion
        if name in ("add", "sub", "subtract") and isinstance(kwargs.get("alpha"), Tensor):
            args = (args[0], args[1] * kwargs.pop("alpha"))
        elif name in ("addcmul", "addcdiv") and isinstance(kwargs.get("value"), Tensor):
            factor, (x, y, z) = kwargs.pop("value"), args
            made = factor * y * z if name == "addcmul" else factor * y / z
            return x.add_(made) if func.__name__.endswith(ENDS_IN_PLACE) else x + made
        return func(*args, **kwargs)


def _in_float32(x: Any) -> Any:
    return torch.float32 if _is_less_exact(x) else x


def _is_less_exact(x: Any) -> bool:
    return isinstance(x, torch.dtype) and x in LESS_EXACT


@contextmanager
def _functions_of_tensors() -> Iterator[None]:
    """Let the functions in `OF_TENSORS` take tensors inside the context."""
    before = {(module, name): getattr(module, name) for module, names in OF_TENSORS.items() for name in names}

    def of_both(module: Any, name: str) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            of_tensors = any(isinstance(x, Tensor) for x in (args[0] if _is_sequence(args) else args))
            return (OF_TENSORS[module] if of_tensors and not kwargs else plain)[name](*args, **kwargs)

        plain = {name: before[module, name]}
        return function

    for module, name in before:
        setattr(module, name, of_both(module, name))
    try:
        yield
    finally:
        for (module, name), function in before.items():
            setattr(module, name, function)


def _is_sequence(args: tuple[Any, ...]) -> bool:
    return len(args) == 1 and isinstance(args[0], list | tuple)
