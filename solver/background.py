"""Work beside the loop that may take as long as a stranger's server or a chain's blocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result]) -> Future[Result]:
    """Run in a thread that does not keep the process alive; the work limits its own time."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="solver-beside", daemon=True).start()
    return future
