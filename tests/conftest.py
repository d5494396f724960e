"""What every test may count on: its own home folder, and property tests that draw the same examples each run."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.resuming"]

# Before torch is loaded, and for every process that a test starts: threads that wait for each other's share of an
# operation sleep. By default they spin, and where more threads run than there are cores they take the core from the
# party that they wait for: the tests of products and fused kernels took five times the processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TESTS = Path(__file__).parent
LONGEST = (
    "e2e/test_demo.py",
    "campaign/test_campaign.py",
    "chain/test_solver_killed.py",
    "chain/test_two_deployments.py",
    "same_bits/test_matrix.py",
    "chain/test_verifier_watch.py",
    "chain/test_assay_commands.py",
    "chain/test_assay_verify.py",
    "chain/test_arbiter_elements.py",
    "chain/test_solver_games.py",
    "unit/sim/test_cli.py",
    "chain/test_replay.py",
    "chain/test_solver_run.py",
    "unit/solver/test_pipeline.py",
    "unit/parallel/test_workers.py",
    "unit/assay/test_commands_start.py",
    "chain/test_verifier_killed.py",
    "chain/test_games.py",
    "unit/capture/test_resnet.py",
    "toolchain/test_resuming.py",
    "unit/solver/test_processes.py",
    "chain/test_gpt_games.py",
)
"""Files that take longest, the longest first. They are begun first, so that no process works alone in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {TESTS / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


# A shared machine is slow at times; slowness is measured by `make bench`, not by a deadline per example.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.load_profile("assay")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the test, and every process it starts, out of the operator's own home folder."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "assay-home"))


@pytest.fixture(autouse=True)
def own_random_numbers() -> None:
    """Every test draws the same, whatever ran before it. Tests that need no torch do not pay for loading it."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
