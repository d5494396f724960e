"""`verifier watch --only-watch` has no account: it refuses flags that need one, and does not load torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from protocol.errors import ExitCode
from protocol.node.home import VARIABLE
from verifier.cli import app


@pytest.mark.parametrize(
    "flags", [("--stake", "5"), ("--dev-account", "2"), ("--whistleblow",), ("--further-account", "dev:3")]
)
def test_a_flag_of_who_acts_is_refused(
    flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    result = CliRunner().invoke(app, ["watch", "--only-watch", *flags])
    assert result.exit_code == ExitCode.HOPELESS
    assert "--only-watch: expected no flag of an account, a stake, a service or a device" in result.output


def test_it_loads_no_torch() -> None:
    code = "import sys, verifier.only_watch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
