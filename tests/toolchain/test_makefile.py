"""The Makefile works in a checkout whose path holds a space, and refuses an environment of another Python."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.toolchain.project import EMPTY, REPOSITORY, contracts_project, make

OTHER = f"""#!/bin/sh
echo "$2" >> asked
[ "$1" = -c ] || exit 0
exec {shlex.quote(sys.executable)} -c "import sys; sys.version_info = (3, 12, 1, 'final', 0)
$2"
"""


@pytest.mark.parametrize("target", ["contracts", "lint-contracts", "test-contracts"])
def test_programs_are_found_in_a_path_with_a_space(tmp_path: Path, target: str) -> None:
    (tmp_path / "a b").mkdir()
    project = contracts_project(tmp_path / "a b", EMPTY)
    done = make(project, target, "--dry-run")
    assert done.returncode == 0, done.stdout
    programs = {words[0] for words in map(shlex.split, done.stdout.splitlines()) if "forge" in words[0]}
    assert len(programs) == 1
    program = Path(programs.pop())
    assert program.is_file() or program.name == str(program), "in node_modules, or on PATH"


def test_an_environment_of_another_python_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(REPOSITORY / "Makefile")
    for name in ("requirements.lock", "requirements-nodeps.lock", "pyproject.toml", "setup.py"):
        (tmp_path / name).touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(OTHER)
    python.chmod(0o755)
    done = make(tmp_path, ".venv/.installed")
    assert done.returncode != 0
    assert "Python 3.11 is needed, .venv is of (3, 12): make clean, or remove .venv" in done.stdout
    assert len((tmp_path / "asked").read_text().splitlines()) == 1, "pip was not called"
