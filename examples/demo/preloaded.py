"""Processes of this installation's commands that are forked from one that has imported everything.

Forty processes that each load torch would take a minute and a half of two cores and ten gigabytes. What runs is the
entry point of the command, with its own arguments, environment, log and session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Final

IMPORTED: Final = (
    "assay.cli",
    "assay.commands",
    "assay.serving",
    "solver.cli",
    "solver.node",
    "verifier.cli",
    "verifier.node",
    "tests.adversaries.__main__",
)
"""What the server of forks loads: what the commands load themselves, some of it only when they run."""

_context = get_context("forkserver")
_context.set_forkserver_preload(list(IMPORTED))


class Forked:
    """A process that runs `main()` of a module. As `subprocess.Popen`, as far as `Children` asks."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        errors: Path | None = None,
        before: Sequence[Callable[[], None]] = (),
    ) -> None:
        """`command` is the module's name and the arguments. What it writes goes to the end of `log`, or of that and
        `errors`. `before` is called first, in the new process.
        """
        for path in (log, errors or log):
            path.touch()  # so that it can be read from now on
        given = list(command), folder, dict(environment), log, errors or log, tuple(before)
        self._process = _context.Process(target=_run, args=given, name=command[0])
        self._process.start()

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._process.terminate()

    def kill(self) -> None:
        """End it (SIGKILL)."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, when it has. Raises subprocess.TimeoutExpired after that many seconds."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return code


def _run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    errors: Path,
    before: Sequence[Callable[[], None]],
) -> None:
    """Runs in the new process."""
    os.setsid()  # Ctrl-C in the terminal is for the demo, which then asks all to stop
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with open(os.devnull, "rb") as nothing, log.open("ab") as written, errors.open("ab") as said:
        os.dup2(nothing.fileno(), 0)
        os.dup2(written.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = list(command)
    for call in before:
        call()
    import_module(command[0]).main()
