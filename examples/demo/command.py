"""`make demo`: plays the stories, writes `report.json`, and prints the costs and any failures."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples.demo.play import failures, play
from protocol.commitments.atomic import write_atomically
from protocol.errors import ExitCode

FOLDER = Path("build") / "demo"


def demo(say: Callable[[str], None], folder: Path = FOLDER) -> tuple[ExitCode, dict[str, Any]]:
    """Play in `folder`; return the exit code (FINE only if every story ended as expected) and the report.

    Raises StageError and ChainError. Call it in the main thread, because it handles SIGTERM.
    """
    with _terminable():
        report = play(folder.absolute(), say)
    file = folder / "report.json"
    write_atomically(file, (json.dumps(report, indent=2) + "\n").encode())
    for line in costs(report):
        say(line)
    wrong = failures(report)
    for line in wrong:
        say(f"wrong: {line}")
    if not wrong:
        say(
            f"all {len(report['runs'])} stories ended as they must, after {report['seconds']} s; report: {file}"
        )
    return (ExitCode.RETRY if wrong else ExitCode.FINE), report


def costs(report: dict[str, Any]) -> Iterator[str]:
    """A line for each game: its number of transactions, and their gas."""
    for run in report["runs"]:
        for game in (run, run.get("accusation", {})):
            if "gas" in game:
                gas = game["gas"]
                judge = f", {gas['judge']:,} of it for the judgment" if "judge" in gas else ""
                yield f"({run['story']}) game of {game['transactions']} transactions, {gas['total']:,} gas{judge}"


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that the stage ends its processes before this process ends."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
