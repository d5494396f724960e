"""Makes virtual environments that have only the named distributions and their dependencies. Their files are
links into the environment of the tests.
"""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def environment_of(folder: Path, *names: str, extra: Iterable[Path] = ()) -> Path:
    """Make an environment in `folder`, without pip, with the distributions `names` and their dependencies.

    `extra` are further files and folders to link. Returns the environment's Python. Raises
    PackageNotFoundError for a distribution that is not installed here.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for found in closure(names).values():
        for top in tops(found):
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    for path in extra:
        (site / path.name).symlink_to(path)
    return folder / "bin" / "python"


def closure(names: Iterable[str]) -> dict[str, Distribution]:
    """The distributions and their dependencies, by name. Extras, and dependencies whose markers do not hold
    here, are left out.
    """
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        for text in found[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def tops(found: Distribution) -> set[str]:
    """The top-level files and folders of a distribution in site-packages, except `__pycache__`."""
    parts = {path.parts[0] for path in found.files or ()}
    return {part for part in parts if part not in ("..", "__pycache__") and not part.startswith("/")}


def run(python: Path, root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in the folder `root`, without this process's PYTHON… variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(python), *arguments],
        cwd=root,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
