"""`--resume=FILE`: skip tests that have already passed on this commit, and note those that pass now.

For suites of an hour or more: an interrupted run continues where it stopped. A checkout with changes matches
no commit, so it resumes nothing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--resume", type=Path, help="file with the tests that have passed, one per line; kept by commit"
    )


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--resume")
    if file is not None:
        config.pluginmanager.register(Resuming(config, file))


class Resuming:
    """Reads the file once, before any test. The process that collects the reports of all tests writes the
    name of each test that has passed at the end of the file, as soon as the test's report comes.
    """

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._file = file
        self._writes = not hasattr(config, "workerinput")  # only the main process gets all reports
        self._commit = clean_commit(config.rootpath)
        lines = file.read_text().splitlines() if file.is_file() else []
        self._passed = frozenset(lines[1:] if self._commit and lines[:1] == [self._commit] else ())
        if self._commit and self._writes and not self._passed:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._commit + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the tests that have passed."""
        done = [item for item in items if item.nodeid in self._passed]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self._passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test whose call phase passed."""
        if self._commit and self._writes and report.when == "call" and report.passed:
            with self._file.open("a") as file:
                file.write(report.nodeid + "\n")


def clean_commit(root: Path) -> str:
    """The commit of a checkout without changes; empty if there are changes."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    found = run.stdout.strip()
    return "" if found.endswith("-dirty") else found
