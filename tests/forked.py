"""The project's commands in their own processes, forked from one that has imported everything.

A process that loads torch and all of this project itself takes five seconds of a core, and a run of the tests starts
some hundred. What has to be started as an operator starts it (start-up itself, libraries that are preloaded,
namespaces) still is.
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
"""Of each: they share the machine. Read when torch is loaded, so by the process that they are forked from."""


def start(
    module: str,
    *arguments: str,
    log: Path,
    errors: Path | None = None,
    environment: Mapping[str, str] | None = None,
    before: Sequence[Callable[[], None]] = (),
) -> Forked:
    """A command, `solver.cli` say, with this process's environment variables but for those given. What it writes goes
    to the end of `log`, or of that and `errors`. `before` is called first, in it.
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
    """A command that ends by itself, with its output and errors. Raises subprocess.TimeoutExpired."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = start(module, *arguments, log=output, errors=errors, environment=environment)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        return CompletedProcess([module, *arguments], code, output.read_text(), errors.read_text())
