"""A process that kills itself at a chosen moment of keeping a checkpoint, as if it crashed. For tests only.

Call `install("rename", 5)` before a solver starts: the process gets SIGKILL just before its fifth rename.

put       a blob or a manifest is about to be stored; none of its bytes are written
rename    all bytes of the blob or manifest are on disk under a temporary name
row       all blobs and the manifest of a checkpoint are on disk; the database does not know it
known     the database knows the checkpoint; the process has not yet continued
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from protocol.commitments import BlobStore
from protocol.execution.replay import HonestExecutor
from protocol.program.step import State
from solver.database import CheckpointRow, Database
from solver.training import Training
from tests.unit.solver import tiny


def dawdle(seconds: float) -> None:
    """Slow every step down by `seconds`, so that a training lasts for several blocks of the chain."""
    step = HonestExecutor.step

    def late(executor: HonestExecutor, state: State, number: int, /) -> State:
        time.sleep(seconds)
        return step(executor, state, number)

    HonestExecutor.step = late  # type: ignore[method-assign]


MOMENTS = ("put", "rename", "row", "known")


def install(moment: str, number: int) -> None:
    """Make this process kill itself just before the `number`-th `moment`, counted from 1."""
    counts = {name: count(1) for name in MOMENTS}

    def pass_by(name: str) -> None:
        if next(counts[name]) == number and name == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    put, replace, add = BlobStore.put, os.replace, Database.add_checkpoint

    def dying_put(store: BlobStore, data: Any) -> str:
        pass_by("put")
        return put(store, data)

    def dying_replace(*paths: Any) -> None:
        pass_by("rename")
        replace(*paths)

    def dying_add(database: Database, task: int, row: CheckpointRow) -> None:
        pass_by("row")
        add(database, task, row)
        pass_by("known")

    targets: list[tuple[Any, str, Callable[..., Any]]] = [
        (BlobStore, "put", dying_put),
        (os, "replace", dying_replace),
        (Database, "add_checkpoint", dying_add),
    ]
    for owner, name, function in targets:
        setattr(owner, name, function)


def main() -> None:
    """Run the tiny training in a folder; the process dies at the moment that the arguments name."""
    install(sys.argv[2], int(sys.argv[3]))
    training = Training(tiny.run_store(Path(sys.argv[1]), tiny.database(Path(sys.argv[1]))), tiny.initial)
    while not training.done:
        training.segment(lambda _number, _state: None)
    training.finish()
