"""Runs many entries in parallel, each in its own process with a time limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from sysconfig import get_path
from typing import Final

from protocol.capture import CaptureError
from tests.models.check import Differs, Figures, check
from tests.models.families import entries

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "build" / "models.jsonl"
SECONDS: Final = 300.0
"""Time limit for one entry, including library imports; generous, for busy machines."""
LONGEST: Final = 600
"""Maximum length of a stored failure, in characters."""


@dataclass(frozen=True)
class Result:
    """The result of an entry. If the entry passed, `figures` has its measurements and `failure` is empty;
    otherwise `failure` says why it failed, and `figures` is None.
    """

    entry: str
    failure: str
    figures: Figures | None
    commit: str


def run(played: Mapping[str, str], jobs: int, commit: str, file: Path = FILE) -> list[Result]:
    """Run the entries in `played`, which maps each name to its module; append each result to `file` as it arrives."""
    found = []
    file.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as threads:
        for done in as_completed([threads.submit(_alone, *each, commit) for each in played.items()]):
            result = done.result()
            found.append(result)
            with file.open("a") as lines:
                lines.write(json.dumps(asdict(result)) + "\n")
            print(
                f"{result.entry}: {result.failure.splitlines()[0] if result.failure else 'captured'}",
                flush=True,
            )
    return found


def kept(file: Path = FILE, commit: str | None = None) -> dict[str, Result]:
    """Each entry's last result in `file`. If `commit` is given, only results from that commit count."""
    found = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        result = read(json.loads(line))
        if commit is None or result.commit == commit:
            found[result.entry] = result
    return found


def read(fields: dict[str, object]) -> Result:
    """A result from its JSON fields."""
    figures = fields.pop("figures")
    return Result(**fields, figures=Figures(**figures) if isinstance(figures, dict) else None)  # type: ignore[arg-type]


def play(name: str, module: str) -> tuple[str, Figures | None]:
    """Check an entry of a family's module. Returns the reason for a failure ("" if the entry passes) and the
    figures (None if it fails).
    """
    (entry,) = (one for one in entries((module,)) if str(one) == name)
    try:
        return "", check(entry)
    except (CaptureError, Differs) as error:
        return _shortened(str(error)), None
    except Exception as error:  # any exception is the entry's result
        return _shortened(f"{type(error).__name__}: {error}\n{traceback.format_exc()}"), None


def _shortened(text: str) -> str:
    """A message without the paths of this machine's folders. If the rest is longer than `LONGEST`, only its
    beginning and its end are kept.
    """
    installed = Path(get_path("purelib"))
    for folder in (installed, os.path.relpath(installed, ROOT), ROOT):
        text = text.replace(f"{folder}{os.sep}", "")
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _alone(name: str, module: str, commit: str) -> Result:
    command = [sys.executable, "-W", "ignore", "-m", "tests.models", "--one", name, module]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Result(name, f"it took more than {SECONDS:.0f} s", None, commit)
    try:
        failure, figures = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return Result(name, f"exit code {done.returncode}: {done.stderr[-LONGEST:]}", None, commit)
    return Result(name, failure, Figures(**figures) if figures else None, commit)
