"""Assignments to `.data` in a trace: torch exchanges a tensor's memory without an operation that a trace could
record, so the elements are copied instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from protocol.capture.errors import CaptureError
from protocol.capture.tracing.checks import data_of_another_type, shared_data
from protocol.capture.tracing.sources import source_here

SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
"""The function that torch calls for `x.data = y`."""


class Copied(TorchFunctionMode):
    """While active, `x.data = y` copies the elements of y into x.

    Raises `CaptureError` if the type or shape of y differs from that of x. Also raises it if y shares memory
    with one of the tensors `held` or with a tensor assigned before, because a later write would change both
    in torch, but not in the trace.
    """

    def __init__(self, held: Sequence[Tensor]) -> None:
        super().__init__()
        self._held = list(held)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func != SET_DATA:
            return func(*args, **(kwargs or {}))
        self._copy(*args)
        return None

    def _copy(self, old: Tensor, new: Any) -> None:
        if not isinstance(new, Tensor) or new.dtype != old.dtype or new.shape != old.shape:
            raise CaptureError([data_of_another_type(old, new, source_here())])
        if _elements(new) == _elements(old):
            return
        if any(_memory(t) == _memory(new) for t in self._held):
            raise CaptureError([shared_data(source_here())])
        self._held.append(new)
        old.data.copy_(new.detach())


def _memory(t: Tensor) -> int:
    """A number that identifies the memory of a tensor: tensors that exist at the same time have the same
    number if and only if they share memory.
    """
    return int(t.untyped_storage()._cdata)


def _elements(t: Tensor) -> tuple[int, int, tuple[int, ...]]:
    """Where a tensor's elements are: memory, offset and strides."""
    return _memory(t), int(t.storage_offset()), tuple(t.stride())
