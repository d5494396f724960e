"""Trains on the CPU and on CUDA, and compares the roots of the state's tensors after every step. CUDA is run
twice: kernel by kernel, and in a CUDA graph.
"""

from __future__ import annotations

import time
from functools import cache, partial

import torch

from benchmarks.cuda.cells import Cells
from benchmarks.cuda.models import MODELS, SEED
from protocol.capture import CapturedStep
from protocol.execution.device import DeviceExecutor
from protocol.execution.replay import Executor, Work, honest_executor
from protocol.program.library import kernels
from protocol.program.step import State


def of(device: torch.device, name: str) -> Cells:
    """Cells of one model: a run on the CPU, then two runs on the device, each of which is compared with the
    run on the CPU.
    """
    (model,) = (model for model in MODELS if model.name == name)
    steps = model.dry_steps if device.type == "cpu" else model.steps

    @cache
    def captured() -> tuple[CapturedStep, Work]:
        step = model.build(steps)
        program = step.step_program
        return step, Work(1, program, step.fixed, kernels(program.program, step.hints))

    @cache
    def cpu() -> tuple[list[tuple[bytes, ...]], list[str], list[float]]:
        step, work = captured()
        return _run(honest_executor(work), step, steps)

    def plain() -> dict[str, object]:
        _, roots, seconds = cpu()
        return {"state_roots": roots, "seconds_per_step": seconds}

    def device_run(graph: bool) -> dict[str, object]:
        step, work = captured()
        found, roots, seconds = _run(DeviceExecutor(work, device, graph=graph), step, steps)
        differs = _first_difference(found, cpu()[0], work.program.state)
        return {
            "same_bits": differs is None,
            "first_difference": differs,
            "state_roots": roots,
            "seconds_per_step": seconds,
        }

    yield "capture", (lambda: captured()[1].program.program.id.hex())
    yield "cpu", plain
    yield "cuda, kernel by kernel", partial(device_run, False)
    yield "cuda graph", partial(device_run, True)


def _run(
    executor: Executor, step: CapturedStep, steps: int
) -> tuple[list[tuple[bytes, ...]], list[str], list[float]]:
    """Tensor roots after every step, state roots, and the seconds that every step took."""
    program = step.step_program
    state: State = step.initial_state(SEED)
    roots, states, seconds = [], [], []
    for number in range(1, steps + 1):
        start = time.perf_counter()
        state = executor.step(state, number)
        if next(iter(state.values())).device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(round(time.perf_counter() - start, 5))
        host = {name: x.cpu() for name, x in state.items()}
        roots.append(program.tensor_roots(host))
        states.append(program.state_root(host).hex())
    return roots, states, seconds


def _first_difference(
    found: list[tuple[bytes, ...]], right: list[tuple[bytes, ...]], names: tuple[str, ...]
) -> dict[str, object] | None:
    """The first step after which tensors differ, and the names of these tensors; None if no tensors differ."""
    for number, (a, b) in enumerate(zip(found, right, strict=True), start=1):
        wrong = [name for name, x, y in zip(names, a, b, strict=True) if x != y]
        if wrong:
            return {"step": number, "tensors": wrong}
    return None
