"""Random numbers, clocks and files: sources that differ at every call."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tests.unit.capture.steps import cross_entropy
from tests.unit.capture.traps.trap import Batch, Made, trap, weighted


@trap(r"Python's random numbers|takes .* the first time")
def pythons_random_numbers() -> Made:
    return weighted(random.random)


@trap(r"rng changes")
def an_own_generator_of_python() -> Made:
    rng = random.Random(0)
    return weighted(lambda: rng.random())


@trap(r"NumPy's random numbers|takes .* the first time")
def numpys_random_numbers() -> Made:
    return weighted(lambda: float(np.random.rand()))


@trap(r"rng changes")
def an_own_generator_of_numpy() -> Made:
    rng = np.random.default_rng(0)
    return weighted(lambda: float(rng.uniform()))


@trap(r"random numbers")
def a_random_decision_that_hardly_ever_matters() -> Made:
    return weighted(lambda: 1.0 if random.random() < 2.0 else 0.5)


@trap(None)
def torchs_random_numbers() -> Made:
    return nn.Linear(8, 3), lambda model, batch: cross_entropy(model, batch) * torch.rand(())


@trap(r"takes .* the first time")
def the_systems_random_numbers() -> Made:
    return weighted(lambda: 1.0 + secrets.randbelow(1 << 30) / (1 << 30))


@trap(r"takes .* the first time")
def bytes_of_the_system() -> Made:
    return weighted(lambda: 1.0 + int.from_bytes(os.urandom(4), "little") / 2**32)


@trap(r"takes .* the first time")
def a_new_name() -> Made:
    return weighted(lambda: 1.0 + (uuid.uuid4().int % 10**9) / 10**9)


@trap(r"takes .* the first time|asks for the time")
def the_time() -> Made:
    return weighted(lambda: time.time() / 1e9)


@trap(r"asks for the time")
def a_time_that_matters_later() -> Made:
    start = time.monotonic()
    return weighted(lambda: 1.0 if time.monotonic() < start + 3_600 else 0.5)


@trap(r"asks for the time")
def the_hour_of_the_day() -> Made:
    return weighted(lambda: 1.0 if datetime.now(UTC).year < 3_000 else 0.5)


@trap(r"takes .* the first time")
def a_counter_in_a_file() -> Made:
    path = Path(tempfile.mkdtemp()) / "calls"

    def factor() -> float:
        calls = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(calls))
        return float(calls)

    return weighted(factor)


@trap(r"os.environ\['ASSAY_TRAP'\] changes")
def a_counter_in_the_environment() -> Made:
    os.environ.pop("ASSAY_TRAP", None)

    def factor() -> float:
        os.environ["ASSAY_TRAP"] = str(int(os.environ.get("ASSAY_TRAP", "0")) + 1)
        return float(os.environ["ASSAY_TRAP"])

    return weighted(factor)


@trap(r"os.environ\['CALLS_OF_A_TRAP'\] changes")
def a_counter_in_the_environment_that_acts_later() -> Made:
    os.environ["CALLS_OF_A_TRAP"] = "0"

    def factor() -> float:
        os.environ["CALLS_OF_A_TRAP"] = str(int(os.environ["CALLS_OF_A_TRAP"]) + 1)
        return 1.0 if int(os.environ["CALLS_OF_A_TRAP"]) < 1_000 else 0.5

    return weighted(factor)


@trap(r"spells out is the tensor .* the first time")
def a_tensor_of_the_systems_random_numbers() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return cross_entropy(model, batch) * torch.tensor([1.0 + secrets.randbelow(1 << 20) / 2**23]).sum()

    return nn.Linear(8, 3), objective
