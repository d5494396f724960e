"""Settings of all tests: their order, a home folder for each, and the same random numbers in each run."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.delays", "tests.resuming"]

# Let waiting OpenMP threads sleep: set before torch is loaded, and for every process that a test starts. By
# default they spin: with more threads than cores they take the core from the threads they wait for, and the
# tests of products and fused kernels took five times the processor time.
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
"""The slowest test files, slowest first. They start first, so that no process works alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {TESTS / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


# A shared machine is slow at times: `make bench` measures speed, not a deadline per example.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.load_profile("assay")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the test, and every process it starts, out of the operator's home folder."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "assay-home"))


@pytest.fixture(autouse=True)
def own_random_numbers() -> None:
    """Seed torch if it is already loaded, so that every test draws the same numbers whatever ran before. If
    torch is not loaded, this does not load it.
    """
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
