"""`python -m benchmarks.cuda.native`: builds the libraries of setup.py next to their sources.

Nothing is installed. The module needs setuptools, which torch declares as a dependency, and a C++ compiler.
If a library is missing, float64 products or hashlib are used instead, with the same bits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from benchmarks.cuda.cells import cell, write

ROOT = Path(__file__).parents[2]
LIBRARIES = ("protocol/numerics/kernels/_native", "protocol/commitments/_native")


def main() -> None:
    """Build both libraries unless they exist; write a cell for each."""
    before = {library: is_there(library) for library in LIBRARIES}
    said = "" if all(before.values()) else build()
    for library, there in before.items():
        write(library, cell(partial(_found, library, there, said)))


def is_there(library: str, root: Path = ROOT) -> bool:
    """Whether the library, built for this Python, exists next to the library's sources."""
    return any(Path(root, library + suffix).is_file() for suffix in EXTENSION_SUFFIXES)


def build(root: Path = ROOT) -> str:
    """Compile and link in the checkout `root`; return the output."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "setup.py", "build_ext", "--inplace", "--build-temp", folder],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout + done.stderr


def _found(library: str, before: bool, said: str) -> str:
    if before:
        return "was there"
    if is_there(library):
        return "built"
    raise RuntimeError(f"not built: {said[-1500:]}")


if __name__ == "__main__":
    main()
