"""Unusable arguments end a command with exit code 2 before it asks or opens anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from typer import BadParameter

from assay.commands import Context
from assay.settings import AssaySettings
from assay.verifying import Choice, verify
from protocol.node.home import Home, HomeError
from protocol.node.settings import SettingsError, load
from solver.lane import LaneSettings
from solver.settings import SolverSettings
from tests.forked import run
from tests.toolchain.commands import parsed
from verifier.settings import VerifierSettings

NO_TASK = (str(2**63), str(2**256), "0")


@pytest.mark.parametrize("task", NO_TASK)
@pytest.mark.parametrize(
    "command",
    [
        ("assay", "status", "ID"),
        ("assay", "watch", "ID"),
        ("assay", "cancel", "ID"),
        ("assay", "result", "ID"),
        ("solver", "run", "--task", "ID"),
        ("verifier", "watch", "--task", "ID"),
        ("verifier", "inform", "ID", "0", "00"),
        ("verifier", "inform", "1", str(2**256), "00"),
    ],
)
def test_a_number_that_no_task_has_is_refused(command: tuple[str, ...], task: str) -> None:
    with pytest.raises(BadParameter):
        parsed([task if word == "ID" else word for word in command])


@pytest.mark.parametrize("task", NO_TASK)
def test_a_number_that_no_task_has_is_not_verified(task: str) -> None:
    with pytest.raises(SettingsError, match="expected an id from 1 to 9223372036854775807"):
        verify(cast(Context, None), task, None, Choice(None, (), False))


@pytest.mark.parametrize("model", [SolverSettings, VerifierSettings])
@pytest.mark.parametrize("task", NO_TASK)
def test_the_largest_id_is_a_task_for_settings_too(
    model: type[SolverSettings | VerifierSettings], task: str
) -> None:
    assert model.model_validate({"tasks": (2**63 - 1,)}).tasks == (2**63 - 1,)
    with pytest.raises(ValueError, match="tasks"):
        model.model_validate({"tasks": (int(task),)})


TABLES: Mapping[str, type[AssaySettings | SolverSettings | VerifierSettings | LaneSettings]] = {
    "assay": AssaySettings,
    "solver": SolverSettings,
    "verifier": VerifierSettings,
    "lane": LaneSettings,
}


@pytest.mark.parametrize(
    ("table", "name"),
    [*((table, "host") for table in TABLES), ("solver", "monitor_host"), ("verifier", "monitor_host")],
)
def test_an_empty_host_is_refused_from_every_source(tmp_path: Path, table: str, name: str) -> None:
    """A socket would treat an empty host as all addresses of the machine."""
    model, file = TABLES[table], tmp_path / "config.toml"
    with pytest.raises(SettingsError, match=f"setting {name} from flag"):
        load(model, table, file, {name: ""}, {})
    with pytest.raises(SettingsError, match=f"setting {name} from environment ASSAY_{name.upper()}"):
        load(model, table, file, {}, {f"ASSAY_{name.upper()}": ""})
    file.write_text(f'[{table}]\n{name} = ""\n')
    with pytest.raises(SettingsError, match=f"setting {name} from file"):
        load(model, table, file, {}, {})


@pytest.mark.parametrize("speed", ["inf", "nan", "0"])
def test_a_speed_that_no_machine_has_is_refused(tmp_path: Path, speed: str) -> None:
    file = tmp_path / "config.toml"
    for table in ("solver", "verifier"):
        file.write_text(f"[{table}]\nspeed = {speed}\n")
        with pytest.raises(SettingsError, match="setting speed from file"):
            load(TABLES[table], table, file, {}, {})


def test_the_home_of_a_user_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HomeError, match="got no home folder for ~nosuchuser"):
        Home.find(Path("~nosuchuser/x"))
    monkeypatch.setenv("ASSAY_HOME", "~nosuchuser")
    with pytest.raises(HomeError, match="got no home folder for ~nosuchuser"):
        Home.find()
    done = run("assay.cli", "account", "list", "--offline", "--home", "~nosuchuser/x")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
