"""Describes the machine: device, driver, versions, compilers."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import torch

from benchmarks.cuda.cells import Cells
from benchmarks.environment import where
from protocol.numerics.kernels.native import variants


def cells(device: torch.device) -> Cells:
    """Versions, the device, compilers, and the instruction sets of the compiled CPU kernels."""
    yield "versions", _versions
    yield "device", (lambda: _device(device))
    yield "driver", _driver
    yield "compilers", (lambda: {name: _first_line(name) for name in ("nvcc", "g++")})
    yield "where", where
    yield "cpu kernels", (lambda: [*variants()])


def _versions() -> dict[str, object]:
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "cuda": torch.version.cuda,
        **{name: _version(name) for name in ("torch", "triton", "numpy", "pytest", "setuptools")},
    }


def _version(name: str) -> str | None:
    """The version of a package, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _device(device: torch.device) -> dict[str, object] | None:
    """Properties of the device, or None without a CUDA device."""
    if device.type != "cuda":
        return None
    found = torch.cuda.get_device_properties(device)
    return {
        "name": found.name,
        "capability": list(torch.cuda.get_device_capability(device)),
        "memory": found.total_memory,
        "multiprocessors": found.multi_processor_count,
    }


def _driver() -> str | None:
    return _output("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv")


def _first_line(program: str) -> str | None:
    lines = (_output(program, "--version") or "").splitlines()
    wanted = [line for line in lines if "release" in line or "g++" in line]
    return wanted[0] if wanted else None


def _output(program: str, *arguments: str) -> str | None:
    """The standard output of a program, or None if the program is not on PATH."""
    if shutil.which(program) is None:
        return None
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=20)
    return done.stdout.strip()
