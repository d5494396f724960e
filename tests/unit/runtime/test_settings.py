"""Settings: flags over environment over file over defaults; what is unknown or unfit is named with its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from protocol.runtime.home import Home
from protocol.runtime.settings import MASK, SettingsError, load


class Example(BaseModel):
    """Three settings."""

    rpc: str = "http://127.0.0.1:8545"
    stake: int = Field(default=10, ge=1)
    password: str | None = Field(default=None, json_schema_extra={"secret": True})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[solver]\nstake = 20\nrpc = "http://file"\n[verifier]\nother = 1\n')
    return path


def test_each_source_overrides_the_next(file: Path) -> None:
    flags = {"stake": 40, "rpc": None, "password": None}
    loaded = load(Example, "solver", file, flags, {"ASSAY_RPC": "http://environment", "ASSAY_STAKE": "30"})
    assert loaded.values == Example(rpc="http://environment", stake=40)
    assert loaded.sources == {"stake": "flag", "rpc": "environment ASSAY_RPC", "password": "default"}
    assert load(Example, "solver", file, {}, {}).values.stake == 20
    assert load(Example, "solver", file.with_name("none.toml"), {}, {}).values.stake == 10


def test_secrets_are_masked(file: Path) -> None:
    loaded = load(Example, "solver", file, {"password": "hunter2"}, {})
    assert ("password", MASK, "flag") in loaded.rows()
    assert not any("hunter2" in cell for row in loaded.rows() for cell in row)


def test_what_does_not_fit_is_named_with_its_source(file: Path) -> None:
    with pytest.raises(SettingsError, match=r"setting stake from environment ASSAY_STAKE: .* got '0'"):
        load(Example, "solver", file, {}, {"ASSAY_STAKE": "0"})
    with pytest.raises(
        SettingsError, match=r"\[verifier\] of .*: expected settings rpc, stake, password; got other"
    ):
        load(Example, "verifier", file, {}, {})


@pytest.mark.parametrize("text", ["[solver", "solver = 3\n"])
def test_a_file_that_is_no_table_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError, match="settings file"):
        load(Example, "solver", file, {}, {})


def test_the_home_folder_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "from-environment"))
    assert Home.find().root == tmp_path / "from-environment"
    home = Home.find(tmp_path / "given")
    assert home.folder("solver", "31337").stat().st_mode & 0o077 == 0
    assert home.deployment(31337) == tmp_path / "given/deployments/31337.json"
