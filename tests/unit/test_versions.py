"""Only an untested torch version gives a warning, and the tested version is that of the lock file."""

from __future__ import annotations

import logging
import re
import tomllib
from pathlib import Path

import pytest
import torch

from protocol.execution.device import checked
from protocol.execution.versions import TESTED_TORCH, untested_torch

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu", "2.13.1+cu130"])
def test_the_tested_version_says_nothing(version: str) -> None:
    assert untested_torch(version) is None


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cu128", "2.1.3", "3.13.0"])
def test_another_version_is_said(version: str) -> None:
    assert f"torch {version} was not tested, 2.13 was" in str(untested_torch(version))


def test_the_tested_version_is_the_lock_s() -> None:
    lock = (REPOSITORY / "requirements.lock").read_text()
    assert re.findall(rf"(?m)^torch==({re.escape(TESTED_TORCH)}\.\d+)$", lock)
    (wanted,) = (
        line
        for line in tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
        if line.startswith("torch")
    )
    assert wanted == "torch>=2.11,<2.14"


def test_a_party_logs_the_warning_when_it_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        checked("cpu")
        assert not caplog.records
        monkeypatch.setattr(torch, "__version__", "2.11.0")
        checked("cpu")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "torch 2.11.0 was not tested" in caplog.text
