"""Exchanges results of units between processes: raw bits, by broadcasts of torch.distributed.

The backend is gloo for CPUs and nccl for GPUs; it never adds floats. Every process starts the broadcasts in
the same order, and computes while they are under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from protocol.numerics.types import flattened
from protocol.program.execute import CPU
from protocol.program.parallel.errors import PartnerLost, RanksDisagree
from protocol.program.types import TensorType

ALIGNED = 8
"""Alignment of tensors in the common buffer, in bytes: the size of the largest element type."""


class Group:
    """A `torch.distributed` process group, by default with all processes. It exchanges tensors on `device`."""

    def __init__(self, group: dist.ProcessGroup | None = None, device: torch.device = CPU) -> None:
        self._group = group
        self._device = device
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def exchange(
        self, source: int, types: Sequence[TensorType], results: Sequence[Tensor] | None
    ) -> Transfer:
        """Begin to exchange results of these types. Process `source` sends `results`; the others pass None."""
        if results is None:
            buffer = torch.empty(sum(map(_aligned_size, types)), dtype=torch.uint8, device=self._device)
        else:
            buffer = torch.cat([_padded(x, type_) for x, type_ in zip(results, types, strict=True)])
        with self._reached():
            work = dist.broadcast(buffer, group=self._group, async_op=True, group_src=source)
        return Transfer(self, work, buffer, types, results)

    def require_equal(self, root: bytes) -> None:
        """Raise `RanksDisagree` in every process unless all of them pass the same 32 bytes."""
        mine = torch.frombuffer(bytearray(root), dtype=torch.uint8).to(self._device)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        with self._reached():
            dist.all_gather(found, mine, group=self._group)
        roots = [bytes(x.tolist()) for x in found]
        if len(set(roots)) > 1:
            raise RanksDisagree(roots)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """If torch raises an error because a process does not answer, raise `PartnerLost` instead."""
        try:
            yield
        except RuntimeError as error:
            raise PartnerLost(self.rank, self.size, error) from error


class Transfer:
    """Results in transit; `wait` returns them. The sender, too, must wait before it ends the step."""

    def __init__(
        self,
        group: Group,
        work: Any,
        buffer: Tensor,
        types: Sequence[TensorType],
        results: Sequence[Tensor] | None,
    ) -> None:
        self._group, self._work, self._buffer = group, work, buffer
        self._types, self._results = types, results

    def wait(self) -> tuple[Tensor, ...]:
        """Wait for the results and return them. Raises `PartnerLost`."""
        with self._group._reached():
            self._work.wait()
        if self._results is not None:
            return tuple(self._results)
        found, at = [], 0
        for type_ in self._types:
            data = self._buffer[at : at + type_.nbytes]
            found.append(data.view(type_.dtype.storage).view(type_.shape))
            at += _aligned_size(type_)
        return tuple(found)


def _aligned_size(type_: TensorType) -> int:
    return -(-type_.nbytes // ALIGNED) * ALIGNED


def _padded(x: Tensor, type_: TensorType) -> Tensor:
    data = flattened(x).view(torch.uint8)
    return (
        torch.nn.functional.pad(data, (0, _aligned_size(type_) - data.numel()))
        if type_.nbytes % ALIGNED
        else data
    )
