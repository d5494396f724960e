"""docs/operating/supervise.sh: which exits of a node lead to a restart, which ones wait for a person, what a
signal does, and that other commands are not supervised.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.toolchain.project import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "operating" / "supervise.sh"
PATIENCE = 60.0

Supervise = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Supervise]:
    """A function that runs a shell command under the script. By default, the command has the name `solver`
    and the argument `run`, so the script treats it as a node. The command first adds a line to the file
    `started`. Processes that still run after the test are killed.
    """
    running: list[subprocess.Popen[str]] = []

    def start(command: str, program: str = "solver", *arguments: str) -> subprocess.Popen[str]:
        programs = tmp_path / "programs"
        programs.mkdir()
        made = programs / program
        made.write_text(f"#!/bin/sh\necho started >> started; {command}\n")
        made.chmod(0o755)
        process = subprocess.Popen(
            ["sh", str(SCRIPT), program, *(arguments or ("run",))],
            cwd=tmp_path,
            env={**os.environ, "SUPERVISE_PAUSE": "0", "PATH": f"{programs}:{os.environ['PATH']}"},
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()


def starts(folder: Path, at_least: int = 1) -> int:
    """Wait until the command has been started at least `at_least` times; returns the number of its starts so far."""
    deadline = time.monotonic() + PATIENCE
    while True:
        path = folder / "started"
        found = len(path.read_text().splitlines()) if path.is_file() else 0
        if found >= at_least:
            return found
        assert time.monotonic() < deadline, f"started {found} times, not {at_least}"
        time.sleep(0.01)


def said(process: subprocess.Popen[str]) -> str:
    """The next line that the script writes. Lines that the shell itself writes, such as "Killed", are skipped."""
    assert process.stderr is not None
    return next(line for line in process.stderr if line.startswith("supervise: "))


@pytest.mark.parametrize("end", ["exit 1", "kill -KILL $$"])
def test_what_a_restart_may_help_is_started_again(supervise: Supervise, tmp_path: Path, end: str) -> None:
    process = supervise(f"test $(wc -l < started) = 3 && exit 2; {end}")
    assert [said(process).count("is started again in 0 s") for _ in range(2)] == [1, 1]
    assert "has ended with exit code 2 and is not started again" in said(process)
    process.terminate()
    assert process.wait(PATIENCE) == 2
    assert starts(tmp_path) == 3


@pytest.mark.parametrize("code", [0, 2, 3, 130])
@pytest.mark.parametrize("node", [("solver", "run", "--log-json"), ("verifier", "watch")])
def test_what_has_ended_for_good_waits_for_a_person(
    supervise: Supervise, tmp_path: Path, node: tuple[str, ...], code: int
) -> None:
    """After an exit that must not lead to a restart, the script itself keeps running. If it ended, the
    container engine would start the container again, and a drained solver would take tasks again.
    """
    process = supervise(f"exit {code}", *node)
    assert f"has ended with exit code {code} and is not started again" in said(process)
    assert (starts(tmp_path), process.poll()) == (1, None)
    process.terminate()
    assert process.wait(PATIENCE) == code
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
@pytest.mark.parametrize(
    "command", [("assay", "account", "new"), ("solver", "check"), ("verifier", "status")]
)
def test_a_command_that_is_no_node_runs_once(
    supervise: Supervise, tmp_path: Path, command: tuple[str, ...], code: int
) -> None:
    process = supervise(f"exit {code}", *command)
    assert process.wait(PATIENCE) == code
    assert starts(tmp_path) == 1
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_a_signal_is_passed_on_and_waited_for(supervise: Supervise, tmp_path: Path) -> None:
    """As in `protocol.node.stopping`: after the first signal a node completes what it owes; the second ends
    it at once.
    """
    process = supervise(
        "asked=0; trap 'asked=$((asked + 1)); echo asked >> asked' TERM; echo ready >> ready;"
        " while [ $asked -lt 2 ]; do sleep 0.01; done; exit 130"
    )
    asked, deadline = tmp_path / "asked", time.monotonic() + PATIENCE
    while not (tmp_path / "ready").is_file():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for number in (1, 2):
        assert process.poll() is None
        process.terminate()
        while not asked.is_file() or len(asked.read_text().splitlines()) < number:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert process.wait(PATIENCE) == 130
    assert starts(tmp_path) == 1
