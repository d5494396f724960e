"""Imports torch, and the modules that fetch and run bundles, on first use and in one thread.

A node that waits for a task has not imported torch, which takes 200 MB. Several of the node's threads may
need torch for the first time at the same moment. If two threads began with different modules of one package,
each could wait for the other's import. So every part of a node that may load the first bundle calls
`load_torch` first.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from threading import Lock

from protocol.node.process import importing

MODULES = (
    "protocol.tasks.bundles.fetch",
    "protocol.program.scales",
    "protocol.execution.device",
    "protocol.execution.workers.pool",
)
"""Modules whose import loads torch and everything that is needed to fetch and run a bundle."""

_lock = Lock()


def load_torch() -> None:
    """Import torch and `MODULES`, which takes a second or two the first time. Callable from any thread. While
    one thread imports, the others wait for it.
    """
    with _lock:
        _load()


@cache
def _load() -> None:
    with importing():
        for module in MODULES:
            import_module(module)
