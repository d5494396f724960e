"""Capture, program and numerics work with only torch, numpy and their dependencies installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchain import bare
from tests.toolchain.environments import environment_of, run
from tests.toolchain.project import REPOSITORY


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with only torch, numpy and their dependencies."""
    return environment_of(tmp_path_factory.mktemp("bare") / "venv", "torch", "numpy")


def test_capture_program_and_numerics_need_torch_and_numpy_alone(python: Path) -> None:
    done = run(python, REPOSITORY, "-W", "error", "-m", "tests.toolchain.bare")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [bare.root()]


@pytest.mark.parametrize("name", ["pydantic", "web3", "structlog", "fastapi", "safetensors", "pytest"])
def test_the_environment_has_nothing_else(python: Path, name: str) -> None:
    done = run(python, REPOSITORY, "-c", f"import {name}")
    assert f"ModuleNotFoundError: No module named '{name}'" in done.stderr
