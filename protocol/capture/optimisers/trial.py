"""Runs a few real steps of an optimiser on its own parameters, with made-up gradients, then restores
everything.

An optimiser is refused if it changes anything except parameters and their state, because a program has no
place for other changes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protocol.capture.errors import CaptureError, raise_any
from protocol.capture.inputs.python_state import PythonState
from protocol.capture.inputs.python_values import digest_of_tensor
from protocol.capture.optimisers.checks import outside_state, step_raises
from protocol.capture.optimisers.numbers import LESS_EXACT

Kept = dict[str, Any]
"""The optimiser's state of one parameter."""
CALLED = "_opt_called"
"""The attribute that a scheduler sets when the optimiser steps."""
OF_TORCH = {"state", "param_groups", "step", CALLED}
"""Attributes that torch or a scheduler gives every optimiser; a step may change them."""
DEPTH = 4


class _Stored(dict[Any, Any]):
    """A dict that stores everything by `__setitem__`, which subclasses override."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]
        self.update(other)
        return self


class Noting(_Stored):
    """The state of one parameter. `first` keeps a copy of the first value that is stored under each key."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        super().__init__()
        self.first: Kept = {}
        self.update(held)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self.first:
            self.first[key] = value.detach().clone() if isinstance(value, Tensor) else value
        super().__setitem__(key, value)


class _States(_Stored, defaultdict[Any, Any]):
    """The optimiser's state by parameter. Each value is a `Noting`, even if code assigns a plain dict."""

    def __missing__(self, key: Any) -> Noting:
        self[key] = {}
        made: Noting = self[key]
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, Noting(value) if isinstance(value, dict) else value)


class Trial:
    """Runs real steps of an optimiser inside a `with` block. `states` holds each parameter's current state;
    `less_exact` tells whether anything was computed in bfloat16 or float16.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.states = _States()
        self.less_exact = False

    def __enter__(self) -> Self:
        optimizer = self._optimizer
        own = [p for group in optimizer.param_groups for p in group["params"]]
        self._before = [(p, p.data, p.data.clone()) for p in own]
        self._held = optimizer.state, [dict(group) for group in optimizer.param_groups]
        for p, kept in optimizer.state.items():
            self.states[p] = {k: x.clone() if isinstance(x, Tensor) else x for k, x in kept.items()}
        optimizer.state = self.states
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for p, memory, elements in self._before:
            memory.copy_(elements)
            p.data, p.grad = memory, None
        self._optimizer.state, groups = self._held
        for group, options in zip(self._optimizer.param_groups, groups):
            group.clear()
            group.update(options)

    def step(self, parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
        """Run one step. Raises `CaptureError` if it fails, or changes anything but parameters and their state."""
        optimizer = self._optimizer
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g.to(p.dtype)
        before = self._beside()
        try:
            with _Types() as types:
                optimizer.step()
        except Exception as error:
            raise CaptureError([step_raises(optimizer, error)]) from error
        self.less_exact |= types.less_exact
        after = self._beside()
        changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
        others = [
            key
            for key, kept in self.states.items()
            if not isinstance(key, Tensor) or not isinstance(kept, dict)
        ]
        changed += [f"its state under {key!r}" for key in others]
        if changed:
            raise CaptureError([outside_state(optimizer, what) for what in sorted(changed)])

    def _beside(self) -> dict[str, Any]:
        """The attributes and options that a step must leave unchanged. Each key describes one of them. An
        option's value is a dict of its values by the number of the group.
        """
        own: dict[str, Any] = {
            f"the attribute {name}": _plain(x)
            for name, x in vars(self._optimizer).items()
            if name not in OF_TORCH
        }
        for number, group in enumerate(self._optimizer.param_groups):
            for k, x in group.items():
                if k != "params" and x is not None:  # None is what an option is that is not there
                    own.setdefault(f"the option {k!r} of a group", {})[number] = _plain(x)
        return own


class _Types(TorchDispatchMode):
    """Records whether anything is computed in a type with fewer bits than float32."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.less_exact = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.less_exact |= any(isinstance(x, Tensor) and x.dtype in LESS_EXACT for x in tree_leaves(found))
        return found


@contextmanager
def left_as_it_was(optimizer: Optimizer) -> Iterator[PythonState]:
    """Inside the context, the gradients start as None. Yields the Python values that a step may reach outside
    the optimiser's state. When the context is left, these values, the parameters' gradients and the
    optimiser's attributes are restored.
    """
    gradients = [(p, p.grad) for group in optimizer.param_groups for p in group["params"]]
    for p, _ in gradients:
        p.grad = None
    kept = dict(vars(optimizer))
    values = PythonState(_roots(optimizer))
    try:
        yield values
    finally:
        values.restore()
        vars(optimizer).clear()
        vars(optimizer).update(kept)
        for p, gradient in gradients:
            p.grad = gradient


def require_unchanged(optimizer: Optimizer, before: PythonState) -> None:
    """Refuse an optimiser whose steps changed a Python value in `before`, the values before its first step."""
    changes = before.changes(PythonState(before.roots))
    where = sorted({change.where for change in changes if not change.where.endswith(f".{CALLED}")})
    raise_any(outside_state(optimizer, each) for each in where)


def _roots(optimizer: Optimizer) -> dict[str, Any]:
    """Where a step may keep Python values outside the optimiser's state: its attributes, its class, the
    function that steps, and the attributes of its parameters.
    """
    step = optimizer.step
    roots = {f"the attribute {name}": x for name, x in vars(optimizer).items() if name not in OF_TORCH}
    roots |= {type(optimizer).__name__: type(optimizer), "its step": getattr(step, "__func__", step)}
    own = [p for group in optimizer.param_groups for p in group["params"]]
    return roots | {f"the attributes of parameter {k}": vars(p) for k, p in enumerate(own)}


def _plain(x: Any, depth: int = DEPTH) -> Any:
    """A value that stands for the present contents of `x`, so that a later change can be found. Numbers and
    texts stand for themselves, and NaN equals itself. Lists, tuples and dicts are followed through `DEPTH`
    levels. A tensor is represented by its identity, type, shape and a digest of its elements, and everything
    else, including a parameter, by its identity. For a tensor without plain elements, such as a nested one,
    the sum of its elements takes the place of the digest, if it has a sum.
    """
    if isinstance(x, Tensor) and not isinstance(x, nn.Parameter):
        found: list[Any] = [id(x), x.dtype]
        with suppress(Exception):  # of any kind: it may be the submitter's own class
            found.append(tuple(x.shape))
        try:
            found.append(digest_of_tensor(x))
        except Exception:
            with suppress(Exception):
                found.append(repr(float(x.detach().double().sum())))
        return tuple(found)
    if isinstance(x, list | tuple) and depth:
        return tuple(_plain(each, depth - 1) for each in x)
    if isinstance(x, dict) and depth:
        return tuple((str(key), _plain(each, depth - 1)) for key, each in x.items())
    if isinstance(x, float) and math.isnan(x):
        return "nan"
    return x if isinstance(x, int | float | str | bool | None) else id(x)
