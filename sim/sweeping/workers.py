"""Plays chunks in this process or in a pool of processes, with at most two chunks per worker in memory.

Workers are spawned, not forked, so that they share no state with a notebook or with threads. They use one
thread each, leave Ctrl-C to their parent, and exit when the parent is gone. Results come in the order in
which the chunks finish.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import TYPE_CHECKING, Final

from protocol.errors import Retryable
from protocol.node.process import keep_memory

if TYPE_CHECKING:
    from sim.sweeping.plan import Chunk

Played = tuple[int, bytes]
"""A chunk's number and its rows."""
Workers = Callable[[Iterable["Chunk"]], Generator[Played]]

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
AHEAD: Final = 2
"""Chunks assigned to each worker: one in progress and one waiting."""


class WorkerLost(Retryable):
    """A process of the pool was killed from outside, usually for lack of memory."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def here(chunks: Iterable[Chunk]) -> Generator[Played]:
    """Play in this process, one chunk after the other."""
    from sim.sweeping.chunk import play_chunk

    for chunk in chunks:
        yield chunk.number, play_chunk(chunk)


def pool(jobs: int) -> Workers:
    """Return a function that plays chunks in `jobs` processes. The function raises WorkerLost if one of the
    processes is killed.
    """

    def play(chunks: Iterable[Chunk]) -> Generator[Played]:
        context = multiprocessing.get_context("spawn")
        reader, writer = context.Pipe(duplex=False)
        executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(reader,))
        try:
            yield from _in_flight(executor, iter(chunks), jobs * AHEAD)
            executor.shutdown()
        except BrokenProcessPool as error:
            raise WorkerLost(
                "expected every worker to stay, got one that was killed, often for want of memory; "
                "run the same command to go on, with fewer --jobs"
            ) from error
        finally:
            writer.close()  # After an interruption, end workers now; their unfinished chunks are played again.
            executor.shutdown(cancel_futures=True)
            reader.close()

    return play


def _in_flight(executor: ProcessPoolExecutor, chunks: Iterator[Chunk], most: int) -> Iterator[Played]:
    waiting: set[Future[Played]] = {executor.submit(_play, chunk) for chunk in islice(chunks, most)}
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        waiting |= {executor.submit(_play, chunk) for chunk in islice(chunks, len(done))}
        for future in done:
            yield future.result()


def _play(chunk: Chunk) -> Played:
    from sim.sweeping.chunk import play_chunk

    return chunk.number, play_chunk(chunk)


def _start(parent: Connection) -> None:
    for name in THREADS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_memory()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """Exit when the parent is gone. A parent that is killed does not close its queues, but its end of this
    pipe closes. Without this function, workers would wait for ever.
    """
    wait_for([parent])
    os._exit(1)
