"""Measures idle nodes: the memory and processor time of a node that waits for a task.

Each node is a separate process on a chain without tasks and with a block every two seconds. Memory is
measured when the node has caught up, and again after a minute of waiting; the larger value counts. torch is
loaded only with the first task. Processor time is the node's use during that minute.
"""

from __future__ import annotations

import time

from benchmarks.measure import Row
from benchmarks.soak.starting import NODES, ground
from benchmarks.soak.usage import usage_of

BLOCK_SECONDS = 2
MINUTE = 60.0
MEGABYTE = 10**6


def rows(seconds: float = MINUTE) -> list[Row]:
    """Rows with the memory and processor time of each node."""
    found = []
    with ground() as stage:
        stage.make_blocks_every(BLOCK_SECONDS)
        for name, command in NODES.items():
            with stage.idle(command) as pid:
                before = usage_of(pid)
                time.sleep(seconds)
                after = usage_of(pid)
            resident = max(before.resident, after.resident) / MEGABYTE
            used = (after.seconds - before.seconds) * MINUTE / seconds
            found.append(Row(f"`{name}` without a task, memory", f"{resident:.0f} MB", "150 MB"))
            found.append(Row("processor time of it, a minute", f"{used:.2f} s", ""))
    return found
