"""Fixtures: a GPU, Triton, and Triton's interpreter and compiler in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch

ROOT = Path(__file__).parents[2]

Test = TypeVar("Test", bound=Callable[..., object])
Interpret = Callable[..., Any]
"""Takes the name of a function of `interpreted.py` and its arguments; returns the function's result."""


def needs_triton(test: Test) -> Test:
    """Mark a test that needs Triton but no GPU: `make test-heavy` and `make test-gpu` run it."""
    marked: Test = pytest.mark.gpu(pytest.mark.heavy(test))
    return marked


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    """The CUDA device; skips the test if there is none."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device("cuda")


@pytest.fixture(scope="session")
def triton() -> None:
    """Skip the test unless Triton is installed."""
    if find_spec("triton") is None:
        pytest.skip("Triton is not installed: `make test-heavy` and `make test-gpu` install it")


@pytest.fixture(scope="session")
def interpret(triton: None) -> Interpret:
    """Runs a function of `interpreted.py` in a process in which Triton interprets kernels on the CPU."""
    del triton
    return lambda name, *arguments: _run(name, arguments, {"TRITON_INTERPRET": "1"})


@pytest.fixture(scope="session")
def compiled(triton: None) -> Interpret:
    """Runs a function of `interpreted.py` in a process in which Triton compiles kernels and runs none."""
    del triton
    return lambda name, *arguments: _run(name, arguments, {})


def _run(name: str, arguments: tuple[object, ...], variables: dict[str, str]) -> Any:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"} | variables
    command = [sys.executable, "-m", "tests.gpu.interpreted", name, *map(json.dumps, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
