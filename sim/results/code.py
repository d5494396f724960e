"""Finds the files with the code that computed a study's rows. The manifest's question has a hash of them.

They are the study's file and every module of `sim` that it imports, directly or not. Imports are read from
syntax trees, so imports inside functions are followed too. `sim.figures` is left out, because figures are
drawn afterwards. For every study, the files also include the code that lays out rows, and the modules and the
file that give the recommended terms. They do not include a researcher's other files or any other package, but
the manifest has NumPy's version and all parameter values.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import protocol.chain.recommendation
import protocol.tasks.amounts
import protocol.tasks.economics
import protocol.tasks.trust
import sim
from protocol.chain.parameters import PRESETS
from sim.studies.study import Study

_ROOT: Final = Path(sim.__file__).parent
_AFTER: Final = _ROOT / "figures.py"
_BESIDE: Final = (
    Path(protocol.tasks.amounts.__file__),
    Path(protocol.tasks.economics.__file__),
    Path(protocol.tasks.trust.__file__),
    Path(protocol.chain.recommendation.__file__),
    PRESETS / "recommended.toml",
    _ROOT / "sweeping" / "chunk.py",
)
"""Sources that count for every study. Their imports are not followed: `chunk` imports the catalogue of all
studies, so every study would depend on all others.
"""


def sources(study: Study) -> list[Path]:
    """The study's file, the modules of `sim` that it imports, directly or not, and the files that count for
    every study. The order is fixed.
    """
    own = Path(inspect.getfile(type(study)))
    found: set[Path] = set()
    left = [own]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _imported(path, path.stat().st_mtime_ns)
    return [own, *sorted(found - {own}), *_BESIDE]


@lru_cache(maxsize=1000)
def _imported(path: Path, _changed: int) -> tuple[Path, ...]:
    names = {name for node in ast.walk(ast.parse(path.read_bytes())) for name in _names(node)}
    return tuple(file for name in sorted(names) for file in _files(name))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(name: str) -> Iterator[Path]:
    """The files of a `sim` module and of the packages that contain it; none for names outside `sim`."""
    first, *parts = name.split(".")
    if first != "sim":
        return
    for count in range(1, len(parts) + 1):
        place = _ROOT.joinpath(*parts[:count])
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file() and file != _AFTER:
                yield file
