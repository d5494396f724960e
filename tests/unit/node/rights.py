"""Runs commands without root's power to ignore file modes. So they may use only files whose mode allows it,
even if root runs the tests.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PR_CAPBSET_DROP = 24
OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root ignores modes (capabilities(7))."""


def run_without_rights(program: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run `assay`, `solver` or `verifier` with this home folder, without the capabilities `OVERRIDES`."""
    libc = ctypes.CDLL(None)

    def drop() -> None:
        if os.geteuid() == 0:
            for capability in OVERRIDES:
                libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)

    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return subprocess.run(
        [sys.executable, "-c", f"from {program}.cli import main; main()", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**environment, "ASSAY_HOME": str(home)},
        check=False,
        preexec_fn=drop,
    )


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    """Give a file or folder another mode inside the block."""
    before = path.stat().st_mode & 0o7777
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)
