"""Maps a function over items on several threads, for work that releases the interpreter's lock (hashes,
files).

Does not use `concurrent.futures`, because a process that exits waits for that module's threads. A process
that has been told to stop at once would therefore still finish writing a checkpoint that will never be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Sequence[Item], threads: int = 1) -> list[Result]:
    """`[function(item) for item in items]`, computed on this thread and at most `threads - 1` daemon
    threads.

    After an error, no thread takes more than one further item. Once every thread has finished its items, the
    error of the first failed item, in the order of `items`, is raised.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    failed, turn, numbers = Event(), Lock(), iter(range(len(items)))

    def work() -> None:
        while not failed.is_set():
            with turn:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors[number] = error
                failed.set()

    others = [
        Thread(target=work, name="commitments", daemon=True) for _ in range(min(threads, len(items)) - 1)
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]
