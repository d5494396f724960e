"""A small task for tests of the solver: two tensors, one call, and a dataset that is added in each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from protocol.commitments import BlobStore
from protocol.execution.replay import HonestExecutor
from protocol.node.database import Identity
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, Program, StepProgram, TensorType
from solver.database import Database, Stage
from solver.run_store import Materials, RunStore
from solver.training import Training

TASK = 7
SEGMENTS = 3
STEPS = 4
WEIGHTS = TensorType(DType.F32, (300,))
COUNT = TensorType(DType.I32, ())
IDENTITY = Identity("0xgenesis", "0xmarket", "0xaccount")


def half() -> Program:
    """x / 2 as a separate program, to be called."""
    b = Builder("half")
    x = b.input(WEIGHTS)
    b.output(b.mul(x, b.f32(0x3F000000)))
    return b.build()


def step_program() -> StepProgram:
    """weights' = half(weights) + data; count' = count + 1."""
    b = Builder("tiny")
    weights, count, data = b.input(WEIGHTS), b.input(COUNT), b.input(WEIGHTS)
    b.output(b.add(b.call(half(), weights)[0], data))
    b.output(b.add(count, b.i32(1)))
    program = StepProgram(b.build(), ("weights", "count"), datasets=1, constants=0)
    program.check()
    return program


def fixed() -> tuple[Tensor, ...]:
    """The dataset."""
    return (torch.arange(300, dtype=torch.float32) / 7,)


def initial() -> dict[str, Tensor]:
    """The state before the first step."""
    return {"weights": torch.zeros(300), "count": torch.tensor(0, dtype=torch.int32)}


def database(folder: Path) -> Database:
    """The database of a solver whose data lies in `folder`."""
    return Database(folder / "solver.sqlite", IDENTITY)


def run_store(folder: Path, kept: Database) -> RunStore:
    """The run store of the tiny task, with what is already on disk."""
    return RunStore(*parts(folder, kept))


def parts(
    folder: Path, kept: Database
) -> tuple[int, StepProgram, Callable[[], Materials], int, int, Database, BlobStore]:
    """The arguments of a run store. The task's row is added to the database if it is missing."""
    if kept.task(TASK) is None:
        kept.put(TASK, Stage.TRAINING)
    program = step_program()
    materials = fixed(), HonestExecutor(program, fixed(), Interpreter())
    return TASK, program, lambda: materials, SEGMENTS, STEPS, kept, BlobStore(folder / "blobs")


def trained(folder: Path) -> RunStore:
    """The run store of the finished run, with everything committed."""
    kept = run_store(folder, database(folder))
    training = Training(kept, initial)
    while not training.done:
        training.segment(lambda _number, _state: None)
    training.close()
    kept.commit(kept.size)
    return kept
