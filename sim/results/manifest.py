"""The manifest of a folder of results: its question, and the versions that computed its rows.

Rows belong together if their `question` is the same. `digest` is a SHA-256 of the question. All other entries
are for readers.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np

import sim
from sim.errors import ResultsError
from sim.parameters import KNOWN
from sim.results.code import sources
from sim.sweeping.plan import Plan

NAME: Final = "manifest.json"
FORMAT: Final = 1
KEYS: Final = ("format", "source", "title", "question", "digest", "versions", "commit", "points", "parts")


def manifest_of(plan: Plan) -> dict[str, Any]:
    """The manifest of a plan's results."""
    question = _question(plan)
    return {
        "format": FORMAT,
        "source": plan.source,
        "title": plan.study.question,
        "question": question,
        "digest": _sha256(json.dumps(question, sort_keys=True).encode()),
        "versions": {
            "assay": _version("assay"),
            "numpy": np.__version__,
            "pyarrow": _version("pyarrow"),
            "python": platform.python_version(),
        },
        "commit": _commit(),
        "points": len(plan.points),
        "parts": plan.chunks,
    }


def read(path: Path) -> dict[str, Any]:
    """Read a manifest. Raises ResultsError if the file cannot be read or is not a manifest."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ResultsError(
            f"{path}: expected a manifest of results, got {type(error).__name__}; name a folder that `sim run` wrote"
        ) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or set(KEYS) - set(found):
        raise ResultsError(
            f"{path}: expected a manifest of format {FORMAT}, got another file; use the version that wrote it"
        )
    return found


def difference(there: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Describe the first difference between two manifests' questions; None if the questions are the same."""
    old, new = there["question"], now["question"]
    for name in sorted(set(old) | set(new)):
        if old.get(name) != new.get(name):
            return f"{name} is {_short(old.get(name))} there and {_short(new.get(name))} here"
    return None


def _question(plan: Plan) -> dict[str, Any]:
    study = plan.study
    base = study.parameters()
    return {
        "study": study.name,
        "runs": plan.runs,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "axes": {
            name: {"unit": study.unit(name).value, "values": list(values)}
            for name, values in plan.axes.items()
        },
        "parameters": {
            name: {"unit": known.metadata["unit"].value, "value": getattr(base, name)}
            for name, known in KNOWN.items()
            if name not in plan.axes
        },
        "points": _sha256(*(json.dumps(dict(point)).encode() for point in plan.points)),
        "points_per_part": plan.points_per_chunk,
        "code": _sha256(*(path.read_bytes() for path in sources(study))),
        "numpy": np.__version__,
    }


def _sha256(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the code's checkout, with "+" appended if files of the checkout are modified; None if the
    commit is unknown.
    """
    folder = Path(sim.__file__).parent
    asked = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=40", "--exclude=*"]
    try:
        return (
            subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
            or None
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
