"""Loading torch, and all of this project that needs it, when there is something to compute: once, and by one thread.

A node that waits for a task has not loaded it: torch alone is 200 MB. Any of a node's threads may need it first, or
several at once. Two threads must not begin with different modules of one package, because each would wait for the
other's import. So every path to the first bundle calls this.
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
"""Modules that import all others that need torch."""

_lock = Lock()


def load_torch() -> None:
    """Import torch and what computes with it, unless that is done: a second or two. Callable from any thread; all
    wait for the one that imports.
    """
    with _lock:
        _load()


@cache
def _load() -> None:
    with importing():
        for module in MODULES:
            import_module(module)
