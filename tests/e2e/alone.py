"""Running a test module in its own network namespace, where the ports named in documents are free."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.toolchain.project import REPOSITORY

OWN = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def run_alone(
    module: str, *arguments: str, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end in a separate network namespace. If the machine allows none, the module uses
    the machine's ports, and may fail.
    """
    gives = subprocess.run([*OWN, "true"], capture_output=True, check=False).returncode == 0
    return subprocess.run(
        [*(OWN if gives else []), sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def clean_environment(home: Path, anvil: str) -> dict[str, str]:
    """A newcomer's environment: no variable whose name begins with `ASSAY_`, `home` as the home folder, the
    installed commands on PATH, `anvil` as the path of anvil, and one thread.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    path = f"{Path(sys.executable).parent}:{kept['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "ANVIL": anvil, "OMP_NUM_THREADS": "1"}
