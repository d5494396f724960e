"""Whole runs on a CUDA device have the CPU's hash: arithmetic.md section 8. Needs only torch and numpy."""

from __future__ import annotations

import pytest
import torch

from benchmarks.cuda.models import MODELS, SEED, Model
from protocol.execution.device import DeviceExecutor
from protocol.execution.replay import Work, honest_executor
from protocol.program.library import kernels
from protocol.program.step import State, metrics

STEPS = {"mlp": 1_000, "resnet": 50, "gpt": 300}


@pytest.mark.gpu
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "model", [model for model in MODELS if model.name in STEPS], ids=lambda model: model.name
)
def test_a_whole_run_on_cuda_has_the_cpus_hash(model: Model) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    steps = STEPS[model.name]
    captured = model.build(steps)
    program = captured.step_program
    work = Work(1, program, captured.fixed, kernels(program.program, captured.hints))
    ours = DeviceExecutor(work, torch.device("cuda"))
    plain = honest_executor(work)
    here: State = captured.initial_state(SEED)
    there = here
    for number in range(1, steps + 1):
        here, there = plain.step(here, number), ours.step(there, number)
    final = {name: x.cpu() for name, x in there.items()}
    assert program.state_root(final) == program.state_root(here)
    assert metrics(final) == metrics(here)
