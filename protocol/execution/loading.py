"""Imports torch, and all modules that need it, on first use and in one thread.

A node that waits for a task has not imported torch, which takes 200 MB. Several of its threads may need it first at the
same time. If two threads began with different modules of one package, each could wait for the other's import. So every
path to a first bundle calls `load_torch`.
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
"""These modules import all others that need torch."""

_lock = Lock()


def load_torch() -> None:
    """Import torch and all modules that need it, which takes a second or two the first time. Callable from any thread;
    other threads wait for the one that imports.
    """
    with _lock:
        _load()


@cache
def _load() -> None:
    with importing():
        for module in MODULES:
            import_module(module)
