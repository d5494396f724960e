"""Tools of `make test-heavy`: Halmos and Slither, installed in build/formal/venv, and the forge that they
call.

They are not in the project's environment, because they pin other versions of its packages (requirements.txt).
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
    """The path of a program. If the program is missing, skips the test with a message that says what installs it."""
    found = BUILD / "venv" / "bin" / name
    if not found.is_file():
        pytest.skip(f"{name} is not installed: `make test-heavy` installs it")
    return found


def run(*command: object, timeout: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository root with forge in PATH, and capture its output as text. `timeout` is
    in seconds.
    """
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
