"""Memory of a device that this process may use: the free memory, and the memory that the process already has."""

from __future__ import annotations

import torch

from protocol.execution.workers.memory import available
from protocol.node.memory import own_memory


def memory_for(device: torch.device) -> int | None:
    """Bytes that this process may use; None if the system does not say. For a GPU, the driver counts the free
    memory, so the use by other processes is taken into account.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device)
    free_here, own = available(), own_memory()
    return None if free_here is None or own is None else free_here + own
