"""Commands of all parties: connection options, errors as one line, exit codes, `config show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from protocol.errors import AssayError, ExitCode
from protocol.node.commands import READS, SENDS, Flags, add_config, app_of, command
from protocol.node.options import HomeOption, at_home

SEEN: list[tuple[Flags, int]] = []


class Settings(BaseModel):
    """Two settings."""

    rpc: str = "http://127.0.0.1:8545"
    stake: int = 3


app = app_of("An app.")
add_config(app, lambda: Settings, "solver", "app config show")


@command(app, connection=SENDS)
def send(connection: Flags, number: int = 1, home: HomeOption = None) -> ExitCode:
    """Send."""
    at_home(home)
    SEEN.append((connection, number))
    if number == 0:
        raise AssayError("number", expected="above 0", got=0, remedy="name another")
    return ExitCode.FRAUD if number == 9 else ExitCode.FINE


@command(app, connection=READS)
def look(connection: Flags) -> None:
    """Only look."""
    SEEN.append((connection, 0))


@command(app, "other-name", connection=["rpc"])
def named(connection: Flags, file: Path = Path("x")) -> None:
    """A command by another name."""
    SEEN.append((connection, len(str(file))))


@command(app)
def plain(number: int = 2) -> None:
    """No connection."""
    SEEN.append(({}, number))


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and what was printed."""
    SEEN.clear()
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("arguments", "flags", "number"),
    [
        (["send"], {"rpc": None, "account": None, "password_file": None, "deployment": None}, 1),
        (
            ["send", "--rpc", "http://a", "--dev-account", "3", "--deployment", "d.json", "--number", "4"],
            {"rpc": "http://a", "account": "dev:3", "password_file": None, "deployment": Path("d.json")},
            4,
        ),
        (
            ["send", "--account", "name", "--password-file", "p"],
            {"rpc": None, "account": "name", "password_file": Path("p"), "deployment": None},
            1,
        ),
        (["look", "--rpc", "http://a"], {"rpc": "http://a", "deployment": None}, 0),
        (["other-name", "--file", "four"], {"rpc": None}, 4),
        (
            ["send", "--dev-account", "0"],
            {"rpc": None, "account": "dev:0", "password_file": None, "deployment": None},
            1,
        ),
        (["plain", "--number", "5"], {}, 5),
    ],
)
def test_connection_options_become_settings(arguments: list[str], flags: Flags, number: int) -> None:
    assert run(*arguments) == (0, "")
    assert [(flags, number)] == SEEN


@pytest.mark.parametrize("arguments", [["look", "--account", "a"], ["other-name", "--deployment", "d"]])
def test_a_command_has_no_options_beyond_its_own(arguments: list[str]) -> None:
    code, _ = run(*arguments)
    assert code == 2
    assert SEEN == []


def test_two_accounts_are_one_too_many() -> None:
    assert run("send", "--account", "a", "--dev-account", "1") == (
        2,
        "error: expected --account or --dev-account, got both; leave one out\n",
    )
    assert SEEN == []


def test_errors_are_one_line_and_codes_are_passed_on() -> None:
    assert run("send", "--number", "0") == (2, "error: number: expected above 0, got 0; name another\n")
    assert run("send", "--number", "9") == (3, "")


def test_help_names_every_option_once() -> None:
    code, shown = run("send", "--help")
    assert code == 0
    for option in (
        "--rpc",
        "--account",
        "--dev-account",
        "--password-file",
        "--deployment",
        "--number",
        "--home",
    ):
        assert shown.count(f" {option} ") == 1, option
    assert "--connection" not in shown


def test_config_show_says_where_each_value_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("[solver]\nstake = 7\n")
    monkeypatch.setenv("ASSAY_RPC", "http://node.example.org/key")
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    code, shown = run("config", "show", "--home", str(tmp_path), "--json")
    assert code == 0
    envelope = json.loads(shown[shown.index("{") :])
    assert envelope["command"] == "app config show"
    assert envelope["data"] == [
        {"name": "rpc", "value": "http://node.example.org/…", "source": "environment ASSAY_RPC"},
        {"name": "stake", "value": "7", "source": f"file {tmp_path / 'config.toml'}"},
    ]


def test_the_function_itself_stays_as_it_was() -> None:
    assert send({"rpc": None}, 9) is ExitCode.FRAUD
    assert isinstance(app, typer.Typer)
