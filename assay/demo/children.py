"""The demo's processes: started with logs of their own, ended by their own number and no other.

Each child is asked to stop (SIGTERM), and made to when it takes too long.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

GRACE_SECONDS = 8.0
"""A party that is asked to stop finishes the transaction it waits for: a few blocks."""


class Children:
    """Processes by name. Leaving the context ends them all."""

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = dict(environment)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, command: Sequence[str], home: Path) -> subprocess.Popen[bytes]:
        """Start a process whose ASSAY_HOME is `home`; what it writes goes to `<name>.log`."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = {**os.environ, **self._environment, "ASSAY_HOME": str(home)}
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        self._processes[name] = process
        return process

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self._logs / f"{name}.log"

    def exit_code(self, name: str) -> int | None:
        """How a process ended; None while it runs."""
        return self._processes[name].poll()

    def stop(self) -> None:
        """End all that still run: ask first, then insist."""
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
