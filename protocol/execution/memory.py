"""How much memory of a device this process may use: free memory, and what it already has."""

from __future__ import annotations

import torch

from protocol.execution.workers.memory import available
from protocol.node.memory import own_memory


def memory_for(device: torch.device) -> int | None:
    """Bytes; None where the system does not say. For a GPU by its driver's count, which includes other processes."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device)
    free_here, own = available(), own_memory()
    return None if free_here is None or own is None else free_here + own
