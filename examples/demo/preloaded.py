"""Runs this installation's commands in processes that are forked from a single process, which has already
imported everything.

Loading torch separately in forty processes would take a minute and a half on two cores, and ten gigabytes of
memory. Each process runs the command's entry point with its own arguments, environment, log and session.
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
"""Modules that the fork server loads. They and the modules that they import include everything that the
commands import, at their start or later.
"""

_context = get_context("forkserver")
_context.set_forkserver_preload(list(IMPORTED))


class Forked:
    """A process that runs a module's `main()`, with the methods of `subprocess.Popen` that are needed."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        errors: Path | None = None,
        before: Sequence[Callable[[], None]] = (),
    ) -> None:
        """`command` is the module's name, followed by the arguments. Standard output is appended to `log`.
        Standard error is appended to `errors`, or to `log` if `errors` is None. The new process calls the
        functions in `before`, and then runs the command.
        """
        for path in (log, errors or log):
            path.touch()  # so that it can be read immediately
        given = list(command), folder, dict(environment), log, errors or log, tuple(before)
        self._process = _context.Process(target=_run, args=given, name=command[0])
        self._process.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
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
    """Run the command in the process that was forked for it."""
    os.setsid()  # only the demo receives Ctrl-C; it then asks all to stop
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
