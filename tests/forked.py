"""The project's commands in separate processes, forked from one that has imported everything.

A test run starts about a hundred processes. If they were not forked, each would need five seconds of a core
to load torch and this whole project. Tests of start-up itself, preloaded libraries or namespaces still start
commands as an operator does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from examples.demo.preloaded import Forked

ROOT: Final = Path(__file__).parents[1]
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Variables that give each process one thread, because the processes share the machine. Torch reads them when
it is loaded, in the process that forks the others.
"""


def start(
    module: str,
    *arguments: str,
    log: Path,
    errors: Path | None = None,
    environment: Mapping[str, str] | None = None,
    before: Sequence[Callable[[], None]] = (),
) -> Forked:
    """Start a command, such as `solver.cli`, with this process's environment variables and those given. Its
    output is appended to `log`; its errors too, or to `errors` if given. The functions `before` are called
    first, in the new process.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_THREAD.items():
            patch.setenv(name, value)
        forkserver.ensure_running()
    chosen = {**os.environ, **ONE_THREAD, **(environment or {})}
    return Forked([module, *arguments], ROOT, chosen, log, errors, before)


def run(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 120
) -> CompletedProcess[str]:
    """Run a command that ends by itself; returns its output and errors. Raises subprocess.TimeoutExpired."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = start(module, *arguments, log=output, errors=errors, environment=environment)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        return CompletedProcess([module, *arguments], code, output.read_text(), errors.read_text())
