"""Refuses a training step whose own code calls the method `step` of an optimiser. The parameters of that
optimiser are not the traced tensors, so a trace would not contain the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from protocol.capture.errors import CaptureError
from protocol.capture.tracing.checks import steps_an_optimizer
from protocol.capture.tracing.sources import source_here


@contextmanager
def unstepped() -> Iterator[None]:
    """Raise `CaptureError` if code of this thread in the `with` block calls `step` of an optimiser."""
    thread = get_ident()

    def refuse(optimizer: Optimizer, *_: Any) -> None:
        if get_ident() == thread:
            raise CaptureError([steps_an_optimizer(type(optimizer).__name__, source_here())])

    handle = register_optimizer_step_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()
