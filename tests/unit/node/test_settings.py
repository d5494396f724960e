"""Flags override the environment, the file and defaults. Invalid settings are named with their source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from protocol.node.home import Home
from protocol.node.settings import MASK, SettingsError, load


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


def test_a_nodes_address_is_shown_without_the_key_in_it(file: Path) -> None:
    loaded = load(Example, "solver", file, {"rpc": "https://mainnet.example.org/v3/0123abcd"}, {})
    assert ("rpc", "https://mainnet.example.org/…", "flag") in loaded.rows()
    assert loaded.values.rpc == "https://mainnet.example.org/v3/0123abcd"


def test_a_secret_that_does_not_fit_is_not_told(file: Path) -> None:
    with pytest.raises(SettingsError, match="setting password from flag") as refused:
        load(Example, "solver", file, {"password": ["hunter2"]}, {})
    assert "hunter2" not in str(refused.value)


class Lists(BaseModel):
    """Settings that hold several values."""

    tasks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    bundles: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("text", "tasks"), [("3", (3,)), ("3,4", (3, 4)), (" 3 , 4 ", (3, 4)), ("", ()), (" ", ())]
)
def test_a_list_in_the_environment_stands_between_commas(
    tmp_path: Path, text: str, tasks: tuple[int, ...]
) -> None:
    loaded = load(Lists, "verifier", tmp_path / "none.toml", {}, {"ASSAY_TASKS": text})
    assert (loaded.values.tasks, loaded.sources["tasks"]) == (tasks, "environment ASSAY_TASKS")
    environment = {"ASSAY_BUNDLES": "file:///srv/bundles/,http://192.168.1.5:8700/"}
    loaded = load(Lists, "verifier", tmp_path / "none.toml", {}, environment)
    assert loaded.values.bundles == ("file:///srv/bundles/", "http://192.168.1.5:8700/")


@pytest.mark.parametrize("text", ["x", "3,", "0", "1;2"])
def test_a_list_in_the_environment_that_does_not_fit_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="setting tasks from environment ASSAY_TASKS"):
        load(Lists, "verifier", tmp_path / "none.toml", {}, {"ASSAY_TASKS": text})


def test_what_does_not_fit_is_named_with_its_source(file: Path) -> None:
    with pytest.raises(SettingsError, match=r"setting stake from environment ASSAY_STAKE: .* got '0'"):
        load(Example, "solver", file, {}, {"ASSAY_STAKE": "0"})
    with pytest.raises(
        SettingsError,
        match=r"\[verifier\] of .*: expected settings rpc, stake, password, got other; remove it",
    ):
        load(Example, "verifier", file, {}, {})


@pytest.mark.parametrize("section", ["solver", "verifier", "assay", "lane"])
def test_every_command_may_have_its_table_beside_those_of_others(tmp_path: Path, section: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[assay]\n[lane]\n[solver]\n[verifier]\n")
    assert load(Lists, section, file, {}, {}).values == Lists()


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
