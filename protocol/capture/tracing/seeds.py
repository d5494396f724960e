"""Refuses a step that seeds torch's random numbers.

Such a step makes torch draw the same numbers every time. A trace does not contain the seed, so the program
would draw different numbers in every step. The preflight would not notice, because it gives torch the
program's numbers.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import torch.utils.checkpoint as checkpoints
from torch import Tensor

from protocol.capture.errors import CaptureError, Problem
from protocol.capture.tracing.checks import seeded
from protocol.capture.tracing.sources import source_here

PLACES: tuple[ModuleType, ...] = (torch, torch.random)
"""The modules that hold torch's generator. `torch.manual_seed` and `torch.random.fork_rng` look it up in
`torch.random`.
"""
BETWEEN = (__file__, torch.random.__file__, contextlib.__file__)


@contextmanager
def unseeded() -> Iterator[None]:
    """Raise `CaptureError` if code in the `with` block sets torch's random numbers to a given seed or state.

    A checkpoint of `torch.utils.checkpoint` may set the state before it runs its function again. Without a
    `context_fn`, that run receives the numbers of the first one (`drawn_once` in tracing/checkpoints.py).
    """
    before = [module.default_generator for module in PLACES]
    watched = _Watched()
    try:
        for module in PLACES:
            module.default_generator = watched  # type: ignore[attr-defined]
        yield
    finally:
        for module, generator in zip(PLACES, before, strict=True):
            module.default_generator = generator  # type: ignore[attr-defined]


class _Watched(torch.Generator):
    """A generator that no code may seed. Nothing is drawn from it."""

    _refusal: Problem | None = None

    def manual_seed(self, *_: Any, **__: Any) -> Any:
        """Refuse a seed."""
        self._refuse()

    def set_state(self, new_state: Tensor) -> Any:
        """Refuse a state, unless a checkpoint sets it."""
        if not _in_a_checkpoint():
            self._refuse()
        return super().set_state(new_state)

    def _refuse(self) -> None:
        """Raise the refusal of the first refused call, also at later calls. Such a later call comes from
        `fork_rng`, which restores the state when its block ends, even if a call in the block was refused.
        """
        self._refusal = self._refusal or seeded(source_here())
        raise CaptureError([self._refusal])


def _in_a_checkpoint() -> bool:
    """Whether the running call comes from `torch.utils.checkpoint`, directly or through `fork_rng`."""
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe(1)))
    return next((file for file in files if file not in BETWEEN), "") == checkpoints.__file__
