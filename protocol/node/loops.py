"""Runs coroutines from synchronous code in a separate event loop, even in a thread that already runs a loop.

For example, a notebook's kernel runs a loop in its thread and calls the cells from that loop. If the calling
thread already runs a loop, the coroutine runs in another thread, and the caller waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class OwnLoop:
    """An event loop that runs coroutines one after the other."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and return its result."""
        if not _runs_a_loop():
            return self._runner.run(work)
        with ThreadPoolExecutor(1) as beside:
            return beside.submit(self._runner.run, work).result()

    def close(self) -> None:
        """Close the loop."""
        if not _runs_a_loop():
            self._runner.close()
            return
        with ThreadPoolExecutor(1) as beside:
            beside.submit(self._runner.close).result()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop, and return its result."""
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
