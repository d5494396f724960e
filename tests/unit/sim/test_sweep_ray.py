"""A sweep on a Ray cluster gives the same bytes as one process. Ray is optional; the cluster is local."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = "import sim.cli as cli; cli.main()"
RUN = ["run", "baseline", "--runs", "5", "--rounds", "2"]


@pytest.fixture
def home() -> Iterator[Path]:
    """A separate home with a short name, because paths of Ray's sockets have at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name:
        yield Path(name)


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="the extra `ray` is not installed: pip install 'assay[ray]'",
)


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    # Ray writes a token below HOME, and its session below its own temporary folder.
    environment = {**os.environ, "HOME": str(home), "RAY_TMPDIR": str(home), "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.mark.heavy
@needs_ray
def test_a_cluster_gives_the_same_bytes(tmp_path: Path, home: Path) -> None:
    for name, where in (("alone", ["--jobs", "1"]), ("ray", ["--ray", "local"])):
        done = run(*RUN, *where, "--out", str(tmp_path / name), home=home)
        assert done.returncode == 0, done.stderr
    alone, ray = (sorted((tmp_path / name / "parts").iterdir()) for name in ("alone", "ray"))
    assert len(alone) == 28
    assert [path.read_bytes() for path in alone] == [path.read_bytes() for path in ray]


@pytest.mark.heavy
@needs_ray
def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path, home: Path) -> None:
    done = run(*RUN, "--ray", "127.0.0.1:1", "--out", str(tmp_path / "out"), home=home)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: --ray: expected a cluster at 127.0.0.1:1, got ")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="the extra `ray` is installed here")
def test_without_the_extra_it_is_named(tmp_path: Path, home: Path) -> None:
    done = run(*RUN, "--ray", "auto", "--out", str(tmp_path / "out"), home=home)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: --ray: expected the optional extra `ray`, got none; pip install 'assay[ray]', or leave --ray out"
    ]
    assert not (tmp_path / "out").exists()
