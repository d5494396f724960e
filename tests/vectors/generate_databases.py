"""Write `databases/`. For each format that a database or the journal has had, the folder gets a dump of a
file in this format, and what the code of that time reads from the file.

The code of a commit makes both: the commit's tree goes into a temporary folder (`git archive`), and
`databases/fill_*.py` runs there. Deterministic. Run as `python -m tests.vectors.generate_databases`, in a
clone that has these commits. README.md has the format.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

FOLDER: Final = Path(__file__).with_name("databases")
FORMATS: Final = {
    "solver-1": "aa59d97c",
    "solver-2": "4a1106a6",
    "verifier-1": "aa59d97c",
    "verifier-2": "387978a8",
    "verifier-3": "acdc9d5d",
    "verifier-4-without-salts": "704992a6",
    "verifier-4-informed": "a6c52a90",
    "verifier-4": "06f9581b",
    "verifier-5": "0ba838d3",
    "verifier-6-accusations": "b3fe0829",
    "verifier-6": "02454871",
    "verifier-7": "4544f2c5",
    "journal-1": "aa59d97c",
}
"""The first commit of each format, or of each variant if several had the same number."""


def dump(file: Path) -> str:
    """A database as SQL, with `user_version` and `application_id` from its header."""
    with closing(sqlite3.connect(file)) as database:
        return "\n".join([*_lines(database), ""])


def _lines(database: sqlite3.Connection) -> Iterator[str]:
    yield from database.iterdump()
    for name in ("user_version", "application_id"):
        ((value,),) = database.execute(f"PRAGMA {name}")
        yield f"PRAGMA {name} = {value};"


def written_by(commit: str, kind: str) -> tuple[str, str]:
    """The dump that a commit's code makes, and what the code reads from it, as JSON. `kind` names the script."""
    repository = Path(__file__).parents[2]
    tree = subprocess.run(
        ["git", "archive", commit, "--", "*.py"], cwd=repository, capture_output=True, check=True
    ).stdout
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
            archive.extractall(folder, filter="data")
        file = Path(folder, f"{kind}.sqlite")
        code = (FOLDER / f"fill_{kind}.py").read_text()
        known = subprocess.run(
            [sys.executable, "-c", code, str(file)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return dump(file), json.dumps(json.loads(known), indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write all files."""
    for name, commit in FORMATS.items():
        sql, known = written_by(commit, name.split("-")[0])
        (FOLDER / f"{name}.sql").write_text(sql)
        (FOLDER / f"{name}.json").write_text(known)


if __name__ == "__main__":
    main()
