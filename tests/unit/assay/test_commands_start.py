"""Commands start fast and fail clearly: --help loads nothing heavy, and a mistake gives one line and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.chain.keystores import open_key, read_key_file

HEAVY = ("torch", "web3", "requests", "eth_abi", "numpy", "fastapi", "httpcore", "eth_account", "structlog")
"""Modules that a help text must not load. Typer itself loads pydantic, so that is not among them."""
HELP = [
    ("assay.cli", ["--help"]),
    ("assay.cli", ["submit", "--help"]),
    ("assay.cli", ["try", "--help"]),
    ("assay.cli", ["price", "--help"]),
    ("assay.cli", ["verify", "--help"]),
    ("assay.cli", ["beacon", "--help"]),
    ("assay.cli", ["watch", "--help"]),
    ("assay.cli", ["cancel", "--help"]),
    ("assay.cli", ["account", "--help"]),
    ("assay.cli", ["account", "list", "--help"]),
    ("assay.cli", ["status", "--help"]),
    ("verifier.cli", ["--help"]),
    ("verifier.cli", ["watch", "--help"]),
    ("solver.cli", ["--help"]),
    ("solver.cli", ["run", "--help"]),
    *(("solver.cli", [name, "--help"]) for name in ("bench", "check", "status", "earnings", "drain")),
]
DIGITS = Path(__file__).parents[3] / "examples" / "digits.toml"
MODULES = 300
"""Maximum number of modules that a help text may load. The benchmarks measure how long a help text takes."""


def run(code: str, *arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
    if home is not None:
        environment["ASSAY_HOME"] = str(home)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize(("module", "arguments"), HELP)
def test_help_loads_little_and_nothing_heavy(module: str, arguments: list[str]) -> None:
    code = (
        f"import sys, {module} as cli\n"
        "try:\n    cli.main()\n"
        "except SystemExit as end:\n"
        f"    print('loaded:', len(sys.modules), *sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = run(code, *arguments)
    assert "Usage:" in done.stdout
    _, count, *heavy = done.stdout.splitlines()[-1].split()
    assert not heavy
    assert int(count) <= MODULES


@pytest.mark.parametrize("module", ["assay.cli", "solver.cli", "verifier.cli"])
def test_the_module_of_a_command_loads_nothing_heavy(module: str) -> None:
    heavy = {*HEAVY, "pydantic", "uvicorn"}
    done = run(f"import sys, {module}\nprint('loaded:', *sorted({heavy!r} & set(sys.modules)))\n")
    assert done.stdout.splitlines() == ["loaded:"], done.stderr


WRONG = [
    ("assay", ["submit", "none.toml"], 2, "expected a readable file"),
    ("assay", ["submit", str(DIGITS)], 2, "expected --yes, where no terminal is there to ask at"),
    ("assay", ["init", "no name"], 2, "choose another name"),
    ("assay", ["try", "none.toml"], 2, "expected a readable file"),
    ("assay", ["price", "none.toml"], 2, "expected a readable file"),
    ("assay", ["status", "--rpc", "http://127.0.0.1:1"], 1, "expected an Ethereum node"),
    ("assay", ["deploy", "--account", "a", "--dev-account", "1"], 2, "leave one out"),
    ("assay", ["account", "new", "../x", "--password-file", "none"], 2, "account name"),
    ("assay", ["beacon", "--rpc", "http://127.0.0.1:1"], 1, "expected an Ethereum node"),
    ("assay", ["beacon", "--account", "a", "--dev-account", "1"], 2, "leave one out"),
    ("assay", ["verify", "none.json"], 2, "expected a readable file"),
    ("assay", ["verify", "1", "--all", "--segments", "2"], 2, "leave one out"),
    ("assay", ["config", "show"], 2, "expected settings rpc, "),
    ("verifier", ["watch", "--rpc", "http://127.0.0.1:1"], 2, "expected settings rpc, "),
    ("verifier", ["resign", "--account", "a", "--dev-account", "1"], 2, "leave one out"),
    ("solver", ["run", "--account", "a", "--dev-account", "1"], 2, "leave one out"),
    ("solver", ["stop"], 1, "expected a running node, got none"),
    ("solver", ["earnings", "--month", "november"], 2, "such as 2026-11"),
    ("solver", ["earnings", "--csv", "--json"], 2, "leave one out"),
]


@pytest.mark.parametrize(("command", "arguments", "code", "words"), WRONG)
def test_a_mistake_is_one_clear_line_and_an_exit_code(
    tmp_path: Path, command: str, arguments: list[str], code: int, words: str
) -> None:
    if "expected settings" in words:
        (tmp_path / "config.toml").write_text(f"[{command}]\nspeeed = 3\n")
    done = run(f"import {command}.cli as cli; cli.main()", *arguments, home=tmp_path)
    assert done.returncode == code
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert words in errors[0]


@pytest.mark.parametrize(("command", "arguments"), [("solver", ["run"]), ("verifier", ["watch"])])
def test_a_machine_that_computes_other_bits_takes_no_part(
    tmp_path: Path, command: str, arguments: list[str]
) -> None:
    code = f"import torch; torch.set_flush_denormal(True); import {command}.cli as cli; cli.main()"
    done = run(code, *arguments, "--rpc", "http://127.0.0.1:1", home=tmp_path)
    assert done.returncode == 2
    assert "do not compute commitments on this machine" in done.stderr.splitlines()[-1]


def test_an_account_is_made_and_listed_and_its_key_never_shown(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("correct horse\n")
    made = run(
        "import assay.cli as cli; cli.main()",
        *["account", "new", "me", "--password-file", str(tmp_path / "password"), "--json"],
        home=tmp_path,
    )
    assert made.returncode == 0
    assert '"command": "account new"' in made.stdout
    assert "correct horse" not in made.stdout + made.stderr
    listed = run("import assay.cli as cli; cli.main()", "account", "list", "--offline", home=tmp_path)
    address = json.loads(made.stdout)["data"]["address"]
    assert listed.stdout == f"me  {address}\n"
    (file,) = tmp_path.rglob("me.json")
    account = open_key(read_key_file(file), "correct horse", "the new key file")
    assert account.address == address
    assert account.key.hex().removeprefix("0x") not in made.stdout + made.stderr + listed.stderr
