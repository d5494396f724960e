"""What every test may count on: a home folder of its own, and property tests that draw the same examples each run.

Tests that wait for chains come first, so that none of them is left over when all others are done.
"""

from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

pytest_plugins = ["tests.resuming"]

# A shared machine is slow at times; slowness is measured by `make bench`, not by a deadline per example.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.load_profile("assay")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the test, and every process it starts, out of the operator's own home folder."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "assay-home"))


LONGEST = ("e2e", "chain")
"""Folders whose files take minutes, most of it waiting, in the order in which they are begun."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files keep their tests together, and their order otherwise."""
    items.sort(key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    folder = path.relative_to(TESTS).parts[0]
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)
