"""Learning rates as data: one f32 per step and parameter group, obtained by running torch's own scheduler.

So a program need not compute the schedule, such as a cosine. After the last entry the rate is zero, because
`gather` reads zero there.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.inputs.model import tensors_of
from protocol.capture.inputs.python_state import Change, PythonState
from protocol.capture.optimisers.checks import (
    changes_more,
    ends_early,
    reads_the_schedule,
    require_all_steps,
    require_only_rates_change,
    require_own_scheduler,
    require_rates,
    require_same_groups,
    uses_the_training,
)
from protocol.capture.tracing.sources import source_here, traceback_of


def learning_rates(
    optimizer: Optimizer,
    scheduler: LRScheduler | None,
    steps: int,
    model: nn.Module,
    roots: Mapping[str, Any],
) -> list[Tensor]:
    """The learning rates of each parameter group of `optimizer`, f32 [steps]. Without a scheduler, a group
    has the same rate in every step.

    Runs `scheduler` over all steps, then restores it and the optimiser's options. Parameters are not touched.
    Raises `CaptureError` for a scheduler that belongs to another optimiser, needs a metric, ends before the
    last step, yields a rate that is not finite, or uses the tensors of `model` or the optimiser's state. Also
    raises it if the scheduler changes anything except rates: other options, the groups, which parameters are
    trained, or a Python value that can be reached from `roots`.
    """
    if scheduler is None:
        return [torch.full((steps,), rate_of(group), dtype=torch.float32) for group in optimizer.param_groups]
    require_own_scheduler(scheduler, optimizer)
    require_all_steps(scheduler, steps)
    before = scheduler.state_dict()
    own = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    # torch's schedulers write into a rate that is a tensor.
    options = [{k: v.clone() if isinstance(v, Tensor) else v for k, v in held.items()} for held in own]
    groups = [(group, [*group["params"]]) for group in optimizer.param_groups]
    values = PythonState(roots)
    trained = {name: p.requires_grad for name, p in model.named_parameters()}
    table: list[list[float]] = [[] for _ in optimizer.param_groups]
    try:
        with warnings.catch_warnings(), _Unused(scheduler, model), _without_state(optimizer, scheduler):
            warnings.simplefilter("ignore")  # torch warns that the scheduler steps without its optimiser
            for step in range(steps):
                if step:
                    scheduler.step()
                    require_same_groups(scheduler, groups)
                    require_only_rates_change(scheduler, options)
                for rates, group in zip(table, optimizer.param_groups):
                    rates.append(rate_of(group))
                require_rates(scheduler, [rates[-1] for rates in table], step)
    except CaptureError:
        raise
    except Exception as error:
        done = len(table[0])
        raise CaptureError([ends_early(scheduler, done, steps, error, traceback_of(error))]) from error
    finally:
        scheduler.load_state_dict(before)
        optimizer.param_groups[:] = [group for group, _ in groups]
        for group, params in groups:
            group["params"] = params
        flags = {name: p.requires_grad for name, p in model.named_parameters()}
        for name, p in model.named_parameters():
            p.requires_grad_(trained[name])
        for group, held, option in zip(optimizer.param_groups, own, options):
            group.update(held)
            for key, value in held.items():
                if isinstance(value, Tensor):
                    value.copy_(option[key])
    changes = [Change(f"{name}.requires_grad", str(trained[name]), str(x)) for name, x in flags.items()]
    changes = [change for change in changes if change.before != change.after]
    raise_any(changes_more(scheduler, x) for x in (*changes, *values.changes(PythonState(roots))))
    return [torch.tensor(rates, dtype=torch.float32) for rates in table]


def rate_of(group: Mapping[str, Any]) -> float:
    """The learning rate of a group; 0 if the optimiser has no rate, or chooses the rate itself."""
    return float(group["lr"]) if group.get("lr") is not None else 0.0


class _Unused(TorchDispatchMode):
    """While active, refuses every operation on a tensor of the model."""

    def __init__(self, scheduler: LRScheduler, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._scheduler = scheduler
        self._memory = {_memory(t) for _, t in tensors_of(model)} - {None}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(isinstance(x, Tensor) and _memory(x) in self._memory for x in tree_leaves((args, kwargs))):
            raise CaptureError([uses_the_training(self._scheduler, "a tensor of the model", source_here())])
        return func(*args, **(kwargs or {}))


def _memory(t: Tensor) -> int | None:
    """The identity of a tensor's memory; None for a sparse tensor."""
    return t.untyped_storage()._cdata if t.layout is torch.strided else None


@contextmanager
def _without_state(optimizer: Optimizer, scheduler: LRScheduler) -> Iterator[None]:
    """Inside the context, refuse every use of the optimiser's state."""
    kind = type(optimizer)

    def state(_: Optimizer) -> Any:
        raise CaptureError([uses_the_training(scheduler, "the optimiser's state", source_here())])

    optimizer.__class__ = type(
        kind.__name__, (kind,), {"state": property(state), "__module__": kind.__module__}
    )
    try:
        yield
    finally:
        optimizer.__class__ = kind


@contextmanager
def as_in_another_step(optimizer: Any, scheduler: Any) -> Iterator[list[Problem]]:
    """Inside the context, change the learning rates, the scheduler's step counts and the optimiser's state,
    so that a trace differs if the code computes with them.

    Yields a list to which a problem is added for each line that reads one of these values from the optimiser
    or the scheduler. Such a line may make a decision that changes only in a later step.
    """
    reads: list[Problem] = []
    state = optimizer.state if isinstance(optimizer, Optimizer) else {}
    tensors = dict(state)
    groups = optimizer.param_groups if isinstance(optimizer, Optimizer) else []
    rates = [group.get("lr") for group in groups]
    parts = [(each, type(each)) for each in _with_parts(scheduler)]
    counting = [each for each in _with_parts(scheduler) if hasattr(each, "last_epoch")]
    epochs = [each.last_epoch for each in counting]
    try:
        for group, rate in zip(groups, rates):
            if rate is not None:
                group["lr"] = rate * 0.5 + 1e-3
        for each, epoch in zip(counting, epochs):
            each.last_epoch = epoch + 1
        state.clear()
        begun = (p for group in groups for p in group["params"] if p not in tensors)
        state.update({p: _Watched({"step": 1}, ("step",), reads) for p in begun})
        if groups:
            optimizer.param_groups = [_Watched(group, ("lr", "initial_lr"), reads) for group in groups]
        for each, kind in parts:
            each.__class__ = _watched(kind, reads)
        yield reads
    finally:
        for each, kind in parts:
            each.__class__ = kind
        if groups:
            optimizer.param_groups = groups
        state.clear()
        state.update(tensors)
        for group, rate in zip(groups, rates):
            if rate is not None:
                group["lr"] = rate
        for each, epoch in zip(counting, epochs):
            each.last_epoch = epoch


class _Watched(dict[str, Any]):
    """A dict that adds a problem to `reads` when code reads one of the `watched` keys, or all values."""

    def __init__(self, held: Mapping[str, Any], watched: Collection[str], reads: list[Problem]) -> None:
        super().__init__(held)
        self._watched, self._reads = watched, reads

    def __getitem__(self, key: str) -> Any:
        self._note(key in self._watched)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key in self._watched)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        # Overriding this makes dict(x), {**x} and x | y read by `__getitem__`.
        return super().__iter__()

    def copy(self) -> dict[str, Any]:
        self._note(True)
        return super().copy()

    def pop(self, key: str, *default: Any) -> Any:
        self._note(key in self._watched)
        return super().pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._note(key in self._watched)
        return super().setdefault(key, default)

    def items(self) -> Any:
        self._note(True)
        return super().items()

    def values(self) -> Any:
        self._note(True)
        return super().values()

    def _note(self, read: bool) -> None:
        if read:
            self._reads.append(reads_the_schedule(source_here()))


def _watched(kind: type[LRScheduler], reads: list[Problem]) -> type[LRScheduler]:
    """A class like `kind` that adds a problem to `reads` when code reads an attribute. Attributes whose names
    begin with two underscores do not count, except `__dict__`.
    """

    def read(self: LRScheduler, name: str) -> Any:
        if name == "__dict__" or not name.startswith("__"):
            reads.append(reads_the_schedule(source_here()))
        return kind.__getattribute__(self, name)

    return type(kind.__name__, (kind,), {"__getattribute__": read, "__module__": kind.__module__})


def _with_parts(scheduler: Any) -> Iterator[LRScheduler]:
    """A scheduler and the schedulers that it runs, as SequentialLR and ChainedScheduler do. ChainedScheduler
    itself has no count of steps.
    """
    if isinstance(scheduler, LRScheduler):
        yield scheduler
        for part in getattr(scheduler, "_schedulers", ()):
            yield from _with_parts(part)
