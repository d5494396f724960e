"""What every test may count on: a home folder of its own, and property tests that draw the same examples each run."""

from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.resuming"]

# A shared machine is slow at times; slowness is measured by `make bench`, not by a deadline per example.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.load_profile("assay")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the test, and every process it starts, out of the operator's own home folder."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "assay-home"))
