"""Support for `torch.utils.checkpoint`, which restores torch's seed and runs a part of the forward pass
again.

A trace has no seed. During tracing, and during the comparison with torch, the second run instead receives the
numbers that the first run drew.

A reentrant checkpoint is refused if one of its arguments needs a gradient. In its backward pass, such a
checkpoint starts a second backward pass, which adds gradients to the `grad` of the parameters that its
function uses. The first backward pass knows only the function's arguments. So in a trace, the loss would seem
not to reach these parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.checkpoint as checkpoints
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from protocol.capture.errors import CaptureError
from protocol.capture.tracing.checks import reentrant
from protocol.capture.tracing.sources import source_here


@contextmanager
def drawn_once() -> Iterator[None]:
    """Inside the context, a checkpoint that restores torch's seed draws random numbers only in its first run;
    its later runs receive the same numbers. Checkpoints with a `context_fn` are not changed. A reentrant
    checkpoint raises `CaptureError` if one of its arguments needs a gradient.
    """
    before = checkpoints._checkpoint_without_reentrant_generator
    reentering = checkpoints.CheckpointFunction.forward

    def running(function: Any, preserve_rng_state: bool, context_fn: Any, *args: Any, **kwargs: Any) -> Any:
        if preserve_rng_state and context_fn is checkpoints.noop_context_fn:
            context_fn = _keeping_and_giving
        return before(function, preserve_rng_state, context_fn, *args, **kwargs)

    def forward(ctx: Any, *args: Any) -> Any:
        if any(ctx.needs_input_grad):
            raise CaptureError([reentrant(source_here())])
        return reentering(ctx, *args)  # type: ignore[no-untyped-call]

    checkpoints._checkpoint_without_reentrant_generator = running  # type: ignore[assignment]
    checkpoints.CheckpointFunction.forward = staticmethod(forward)  # type: ignore[method-assign]
    try:
        yield
    finally:
        checkpoints._checkpoint_without_reentrant_generator = before
        checkpoints.CheckpointFunction.forward = staticmethod(reentering)  # type: ignore[method-assign]


def _keeping_and_giving() -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The dispatch modes of a checkpoint's first run and of its later runs."""
    kept: list[Any] = []
    return _Keeping(kept), _Giving(kept)


class _Keeping(TorchDispatchMode):
    """Records the random tensors that are drawn while it is active."""

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = kept

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._kept.append(_copied(found))
        return found


class _Giving(TorchDispatchMode):
    """While active, returns the recorded tensors instead of drawing random numbers. Each time it is entered,
    it starts again with the first recorded tensor.
    """

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = kept
        self._left: Iterator[Any] = iter(())

    def __enter__(self) -> Any:
        self._left = iter(self._kept)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **(kwargs or {}))
        found = next(self._left)
        return args[0].copy_(found) if func._schema.is_mutable else _copied(found)


def _copied(found: Any) -> Any:
    """Copies of the drawn tensors, since code may write into them."""
    return tree_map_only(Tensor, lambda t: t.detach().clone(), found)
