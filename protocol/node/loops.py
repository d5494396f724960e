"""A separate event loop for code that is not a coroutine, also inside a thread that already runs a loop.

A notebook's kernel calls its cells from its loop. There the work is done in another thread, and waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class OwnLoop:
    """Runs coroutines one after the other, all in the same loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result."""
        if not _runs_a_loop():
            return self._runner.run(work)
        with ThreadPoolExecutor(1) as beside:
            return beside.submit(self._runner.run, work).result()

    def close(self) -> None:
        """Run nothing any more."""
        if not _runs_a_loop():
            self._runner.close()
            return
        with ThreadPoolExecutor(1) as beside:
            beside.submit(self._runner.close).result()


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine run in its own loop."""
    loop = OwnLoop()
    try:
        return loop.run(work)
    finally:
        loop.close()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
