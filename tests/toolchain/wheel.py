"""Builds the wheel from a copy of the sources. Also makes an environment that holds the wheel and the
packages that its metadata names.

Only torch and its dependencies are taken from the environment of the tests: a `.pth` file names a folder of
links to them, so that pip finds them installed. pip installs all other packages, in the versions of
requirements.lock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.toolchain.project import REPOSITORY

BUILT_BY_MAKE = ("protocol/chain/contracts/*.json",)
LIBRARIES = ("protocol/numerics/kernels", "protocol/commitments")


def sources(folder: Path) -> Path:
    """Copy to `folder` the checkout's files that git does not ignore, and the contract data that make has
    written; returns `folder`.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]
    names += [str(path.relative_to(REPOSITORY)) for glob in BUILT_BY_MAKE for path in REPOSITORY.glob(glob)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def with_libraries(folder: Path) -> Path:
    """Copy the libraries compiled by make into `folder`, to the place where setuptools would build them.
    setuptools then recompiles only those whose sources are newer. Returns `folder`.
    """
    built = folder / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for package in LIBRARIES:
        for library in (REPOSITORY / package).glob("_native.*.so"):
            (built / package).mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, built / package)
    return folder


def build(source: Path, folder: Path) -> Path:
    """Build the wheel of the sources in `source`, put it into `folder`, and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*command, "--wheel-dir", str(folder), "."], source)
    (made,) = folder.glob("*.whl")
    return made


def environment(folder: Path, wheel: Path) -> Path:
    """Make a virtual environment with the wheel; returns the folder of its programs."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    parent = folder / "torch-of-the-parent"
    parent.mkdir()
    for path in files_of_torch():
        (parent / path.name).symlink_to(path)
    (packages / "torch.pth").write_text(f"{parent}\n")
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    lock = REPOSITORY / "requirements.lock"
    # A module is compiled when it is first imported; most never are.
    run([*command, "--quiet", "--no-compile", "--constraint", str(lock), str(wheel)], folder)
    return folder / "bin"


def files_of_torch() -> Iterator[Path]:
    """The files and folders of torch and all its dependencies that lie directly in site-packages."""
    seen, queue = set[str](), ["torch"]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        yield from (Path(str(found.locate_file(top))) for top in sorted(tops))
        for line in found.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                queue.append(needed.name)


def run(command: list[str], folder: Path) -> str:
    """Run a command in `folder`, without variables named PYTHON…, ASSAY… or VIRTUAL…; returns its output.
    If the command fails, the error shows the end of the output.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "ASSAY", "VIRTUAL"))
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout
