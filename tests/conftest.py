"""What every test may count on: no test reads or writes the operator's own home folder."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test, and every process it starts, a home folder of its own."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "assay-home"))
