"""`python -m benchmarks.cuda --all` runs with only torch, triton, numpy and pytest installed, and without a
CUDA device.

`make test-heavy` installs Triton.
"""

from __future__ import annotations

import ctypes
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks.cuda import native
from benchmarks.cuda.__main__ import ROUNDS
from tests.toolchain.environments import environment_of, run
from tests.toolchain.project import REPOSITORY

pytestmark = pytest.mark.heavy

PLUGINS = ("hypothesis", "xdist", "pytest_timeout", "sklearn", "pydantic")


@pytest.mark.timeout(1_500)
@pytest.mark.skipif(
    find_spec("triton") is None, reason="Triton is not installed: `make test-heavy` installs it"
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_all_parts_run_dry_without_a_device(tmp_path: Path) -> None:
    python = environment_of(tmp_path / "venv", "torch", "triton", "numpy", "pytest")
    for name in PLUGINS:
        assert run(python, REPOSITORY, "-c", f"import {name}").returncode != 0
    output = tmp_path / "cuda.json"
    command = ("-m", "benchmarks.cuda", "--all", "--budget", "1400", "--output", str(output))
    done = run(python, REPOSITORY, *command)
    found = json.loads(output.read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["dry"]
    assert found["device"] == "none: no CUDA device that torch can use"
    parts = found["parts"]
    assert list(parts) == [part.name for group, _ in ROUNDS for part in group]
    assert all(part["cells"] for part in parts.values())
    versions = parts["machine"]["cells"]["versions"]["value"]
    assert all(versions[name] for name in ("torch", "triton", "numpy", "pytest"))
    for name, part in parts.items():
        if name in ("bits:linear", "bits:mlp", "bits:gpt", "bits:resnet"):
            assert part["cells"]["cuda graph"]["value"]["same_bits"]
            assert "not recorded as a CUDA graph" in part["cells"]["cuda graph"]["log"][0]
    assert {cell["outcome"] for cell in parts["tests:cuda"]["cells"].values()} == {"skipped"}
    assert {cell["outcome"] for cell in parts["tests:triton"]["cells"].values()} == {"passed"}


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_libraries_are_built_without_installing(tmp_path: Path) -> None:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    for library in native.LIBRARIES:
        folder = Path(library).parent
        shutil.copytree(REPOSITORY / folder / "native", tmp_path / folder / "native")
        assert not native.is_there(library, tmp_path)
    said = native.build(tmp_path)
    functions = ("assay_product", "assay_sha256_rows")
    for library, function in zip(native.LIBRARIES, functions, strict=True):
        assert native.is_there(library, tmp_path), said
        (file,) = (tmp_path / library).parent.glob("_native*")
        assert hasattr(ctypes.CDLL(str(file)), function)
