"""The tools of `make test-heavy` that live in build/formal/venv: Halmos and Slither, and the forge that they call.

Not part of the project's environment: they pin packages that it has in other versions (requirements.txt).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "formal"
FORGE = Path(os.environ.get("FORGE", "forge"))


def tool(name: str) -> Path:
    """The program, or a skip that says what installs it."""
    found = BUILD / "venv" / "bin" / name
    if not found.is_file():
        pytest.skip(f"{name} is not installed: `make test-heavy` installs it")
    return found


def run(*command: object, timeout: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in the repository root that finds forge; its output is text. `timeout` is in seconds."""
    folders = [str(BUILD / "venv" / "bin"), str(FORGE.parent), os.environ["PATH"]]
    variables = {**os.environ, "PATH": os.pathsep.join(folders), **environment}
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
