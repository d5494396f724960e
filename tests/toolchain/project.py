"""A temporary contracts project with the repository's Makefile, foundry.toml and compiler."""

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = ("Makefile", "foundry.toml", "node_modules", "package.json", "package-lock.json", "scripts")
EMPTY = "// SPDX-License-Identifier: MIT\npragma solidity 0.8.37;\n\ncontract Empty {}\n"


def make_environment() -> dict[str, str]:
    """Return the environment without the flags of an outer make, which would otherwise reach the inner make."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def contracts_project(root: Path, test_source: str) -> Path:
    """Lay out a project in `root` whose only contract test is `test_source`; return `root`."""
    for name in SHARED:
        (root / name).symlink_to(REPOSITORY / name)
    (root / "tests" / "vectors").mkdir(parents=True)
    for folder in ("src", "test"):
        (root / "contracts" / folder).mkdir(parents=True)
    (root / "contracts" / "src" / "Empty.sol").write_text(EMPTY)
    (root / "contracts" / "test" / "Subject.t.sol").write_text(test_source)
    return root


def make(root: Path, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a make target in `root` and wait for it; standard error goes to standard output."""
    # --old-file: the installed packages count as up to date, so the inner make never touches node_modules.
    command = ["make", "--no-print-directory", "--old-file=node_modules/.installed", *options, target]
    return subprocess.run(
        command,
        cwd=root,
        env=make_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
        check=False,
    )
