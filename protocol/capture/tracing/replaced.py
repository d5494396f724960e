"""Replacements, during a trace, for torch functions that read tensor contents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules import transformer

from protocol.capture.tracing.ctc import ctc_loss


@contextmanager
def replaced() -> Iterator[None]:
    """Replace CTC by traceable operations, and skip the check of whether a transformer's mask is causal. The
    check only selects an equivalent shortcut; without it, the mask is applied as given.
    """
    places: list[tuple[Any, str, Any]] = [
        (torch, "ctc_loss", ctc_loss),
        (transformer, "_detect_is_causal_mask", _said_to_be_causal),
    ]
    before = [getattr(module, name) for module, name, _ in places]
    try:
        for module, name, function in places:
            setattr(module, name, function)
        yield
    finally:
        for (module, name, _), function in zip(places, before):
            setattr(module, name, function)


def _said_to_be_causal(_: object, is_causal: bool | None = None, __: object = None) -> bool:
    return bool(is_causal)
