"""`assay demo`: play the stories, write `report.json`, say what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.demo.play import failures, play
from protocol.commitments.atomic import write_atomically
from protocol.runtime.exits import ExitCode

FOLDER = Path("build") / "demo"


def demo(say: Callable[[str], None], folder: Path = FOLDER) -> tuple[ExitCode, dict[str, Any]]:
    """Play in `folder`; the exit code (FINE only if every story ended as it must) and the report.

    Raises StageError, ChainError.
    """
    report = play(folder.absolute(), say)
    file = folder / "report.json"
    write_atomically(file, (json.dumps(report, indent=2) + "\n").encode())
    wrong = failures(report)
    for line in wrong:
        say(f"wrong: {line}")
    if not wrong:
        say(
            f"all {len(report['runs'])} stories ended as they must, after {report['seconds']} s; report: {file}"
        )
    return (ExitCode.RETRY if wrong else ExitCode.FINE), report
