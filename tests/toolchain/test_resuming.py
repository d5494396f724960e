"""An interrupted suite resumes where it stopped, but only on the same commit and without local changes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY

SUITE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["first", "second"])
def test_it(name):
    ran = Path("ran.txt")
    ran.write_text((ran.read_text() if ran.exists() else "") + name + "\\n")
    assert name == "first" or Path("mended").exists()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "test_suite.py").write_text(SUITE)
    (folder / ".gitignore").write_text("ran.txt\nmended\n__pycache__\n.pytest_cache\n*.list\n")
    commit(folder, "init")
    return folder


def git(folder: Path, *arguments: str) -> None:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)


def suite(folder: Path) -> list[str]:
    """Run the suite; returns the tests that ran."""
    (folder / "ran.txt").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.resuming", "--resume=passed.list"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
    ran = folder / "ran.txt"
    return ran.read_text().split() if ran.exists() else []


def test_what_has_passed_is_left_out(checkout: Path) -> None:
    assert suite(checkout) == ["first", "second"]
    (checkout / "mended").touch()
    assert suite(checkout) == ["second"]
    assert suite(checkout) == []


def test_another_commit_begins_anew(checkout: Path) -> None:
    assert suite(checkout) == ["first", "second"]
    commit(checkout, "another")
    assert suite(checkout) == ["first", "second"]


def test_a_checkout_with_changes_resumes_nothing(checkout: Path) -> None:
    (checkout / "test_suite.py").write_text(SUITE + "\n")
    assert suite(checkout) == ["first", "second"]
    assert suite(checkout) == ["first", "second"]


SHOWN = ("same_bits", "conftest.py")
"""The only tests to collect: collecting all takes a minute."""


def test_make_resumes_a_suite_that_was_begun(tmp_path: Path) -> None:
    """The list of passed tests exists already. pytest must not take its name for a path to collect."""
    passed = tmp_path / "passed.list"
    passed.write_text("no commit\n")
    # Without the variables of the make that runs this test.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "PYTEST_"))
    }
    said = subprocess.run(
        ["make", "-n", "test-heavy"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    (line,) = (line for line in said.stdout.splitlines() if "--resume" in line)
    command = shlex.split(line.replace("build/heavy-passed.list", str(passed)))
    others = [f"--ignore={path}" for path in (REPOSITORY / "tests").iterdir() if path.name not in SHOWN]
    run = subprocess.run(
        [*command, "--collect-only", "-q", "-n", "0", *others],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "tests/same_bits/test_matrix.py" in run.stdout
