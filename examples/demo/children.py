"""Starts and ends processes, each with its own log, for the demo and for soaks.

A process is asked to stop with SIGTERM, and killed if it takes too long.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

from examples.demo.errors import StageError

NOTHING: Mapping[str, str] = MappingProxyType({})
GRACE_SECONDS = 8.0
"""Seconds that a party has to stop. It first finishes its pending transaction, which takes a few blocks."""


class Running(Protocol):
    """A started process, with the methods of `subprocess.Popen` that this module needs."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


Start = Callable[[Sequence[str], Path, Mapping[str, str], Path], Running]
"""Starts a command in a folder with an environment, and appends the command's output to a log."""


def started(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Running:
    """Start a program with its arguments."""
    with log.open("ab") as written:
        return subprocess.Popen(
            list(command),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            # Only the demo receives Ctrl-C of the terminal; it then asks its processes to stop.
            start_new_session=True,
            env=dict(environment),
        )


class Children:
    """Processes by name, all started in `folder`. Leaving the context ends all of them."""

    def __init__(
        self, logs: Path, environment: Mapping[str, str], folder: Path, start: Start = started
    ) -> None:
        self._logs = logs
        self._folder = folder
        self._environment = dict(environment)
        self._start = start
        self._processes: dict[str, Running] = {}
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self, name: str, command: Sequence[str], home: Path, settings: Mapping[str, str] = NOTHING
    ) -> Running:
        """Start a process whose ASSAY_HOME is `home`. Its output goes to `<name>.log`.

        `settings` are additional environment variables.
        """
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = {**self.environment(home), **settings}
        process = self._start(command, self._folder, environment, self.log(name))
        self._processes[name] = process
        return process

    def environment(self, home: Path) -> dict[str, str]:
        """The environment variables of a process whose ASSAY_HOME is `home`."""
        return {**os.environ, **self._environment, "ASSAY_HOME": str(home)}

    def log(self, name: str) -> Path:
        """The log file of a process."""
        return self._logs / f"{name}.log"

    def __contains__(self, name: str) -> bool:
        """Whether a process of this name was started."""
        return name in self._processes

    def pid(self, name: str) -> int:
        """The id of a started process."""
        return self._processes[name].pid

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process, or None while it runs."""
        return self._processes[name].poll()

    def has_written(self, name: str, words: str) -> bool:
        """Whether the log of a process contains some words."""
        return words in self.log(name).read_text(errors="replace")

    def last_line(self, name: str) -> str:
        """The last line in the log of a process, or "nothing" if the log is empty."""
        lines = self.log(name).read_text(errors="replace").splitlines()
        return lines[-1] if lines else "nothing"

    def require_alive(self, may_end: Collection[str] = (), may_finish: Collection[str] = ()) -> None:
        """Raise StageError if a process has ended that had to keep running. A process in `may_end` is allowed
        to end in any way. A process in `may_finish` is allowed to end, but only with exit code 0.
        """
        for name, process in self._processes.items():
            code = process.poll()
            finished = code == 0 and name in may_finish
            if code is not None and name not in may_end and not finished:
                raise StageError(
                    f"process {name}",
                    expected="it to run, or to end with exit code 0" if name in may_finish else "it to run",
                    got=f"exit code {code} after {self.last_line(name)!r}",
                    remedy=f"see {self.log(name)}",
                )

    def stop(self) -> None:
        """End all running processes: ask all to stop, then kill those that take too long."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
