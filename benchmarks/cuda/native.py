"""Build what setup.py compiles, beside its sources, without installing: `python -m benchmarks.cuda.native`.

As `setup.py build_ext --inplace` does, with a compiler process for every source at a time. Sources and options are read
from setup.py itself, which needs setuptools; torch declares that. Where a library cannot be built, float64 products
and hashlib serve, with the same bits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from benchmarks.cuda.cells import cell, write

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Build both libraries; a cell for each."""
    for extension, tiles in extensions():
        write(extension.name, cell(partial(build, extension, tiles)))


def extensions() -> list[tuple[Any, str]]:
    """The extensions of setup.py, and the source that only an assembler which knows tiles takes."""
    import_module("setuptools")  # brings distutils, which Python 3.12 no longer has
    run_setup = import_module("distutils.core").run_setup
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        found = run_setup("setup.py", stop_after="init")
    finally:
        os.chdir(before)
    tiles = found.cmdclass["build_ext"].build_extension.__globals__["TILES"]
    return [(extension, tiles) for extension in found.ext_modules]


def build(extension: Any, tiles: str, *, root: Path = ROOT, to: Path = ROOT) -> str:
    """Compile and link one library in `to`, unless it lies there; what was done. Raises RuntimeError where it fails."""
    target = to / (extension.name.replace(".", "/") + EXTENSION_SUFFIXES[0])
    if target.is_file():
        return "was there"
    compiler = shutil.which("g++")
    if compiler is None:
        raise RuntimeError("expected a C++ compiler (g++), found none")
    with tempfile.TemporaryDirectory() as folder:
        options = [*extension.extra_compile_args, "-fPIC"]
        tried = Path(folder, "tiles").with_suffix(".cpp")
        tried.write_text(tiles)
        if extension.name.startswith("protocol.numerics"):
            try:
                _run(compiler, "-c", str(tried), "-o", f"{folder}/tiles.o")
            except RuntimeError:
                options.append("-DASSAY_NO_AMX")
        objects = [f"{folder}/{number}.o" for number in range(len(extension.sources))]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            made = threads.map(
                lambda source, out: _run(compiler, *options, "-c", str(root / source), "-o", out),
                extension.sources,
                objects,
            )
            list(made)
        linked = target.with_name(f"{target.name}.{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        _run(compiler, "-shared", *objects, *extension.extra_link_args, "-o", str(linked))
        linked.replace(target)
    return "built"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[-1]}: {done.stderr[-1500:]}")


if __name__ == "__main__":
    main()
