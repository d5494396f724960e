"""Command-line options that several commands share, and functions for their values. Typer is the only package
that this module imports.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from protocol.node.home import VARIABLE, Home

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder, else $ASSAY_HOME, else ~/.assay.")
]
RpcOption = Annotated[str | None, typer.Option(help="URL of an Ethereum node; several between commas.")]
AccountOption = Annotated[str | None, typer.Option(help="Name of an account under the home folder.")]
DevAccountOption = Annotated[
    int | None, typer.Option(min=0, help="Index of a development key; development chains only.")
]
PasswordOption = Annotated[Path | None, typer.Option(help="File whose first line opens the account.")]
DeploymentOption = Annotated[Path | None, typer.Option(help="Deployment file, else that of the chain.")]
DeviceOption = Annotated[
    str | None, typer.Option(help="Where steps run: auto, cpu or cuda; the bits are the same.")
]
DevicesOption = Annotated[
    str | None, typer.Option(help="Numbers of several CUDA devices that train, such as 0,1.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="A versioned JSON envelope on stdout.")]
MOST_TASK = 2**63 - 1
"""Largest task id that a command takes, because databases hold no larger number. Markets count their tasks from 1."""
TasksOption = Annotated[
    list[int] | None, typer.Option("--task", min=1, max=MOST_TASK, help="Only this task (repeatable).")
]
LogJsonOption = Annotated[bool, typer.Option("--log-json", help="One JSON object a line on stderr.")]
MonitorPortOption = Annotated[
    int | None, typer.Option(min=0, max=65_535, help="Port of /healthz, /readyz and /metrics; 0: any.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Log more.")]


def chosen_account(account: str | None, dev_account: int | None) -> str | None:
    """The setting `account` from the two options. Raises SettingsError if both are given."""
    if account is not None and dev_account is not None:
        from protocol.node.settings import SettingsError

        raise SettingsError(
            expected="--account or --dev-account",
            got="both",
            remedy="leave one out",
        )
    return f"dev:{dev_account}" if dev_account is not None else account


def at_home(given: Path | None) -> Home:
    """Set the home folder for this process, and return it. Raises HomeError if it is not usable."""
    home = Home.find(given)
    home.require_reachable()
    os.environ[VARIABLE] = str(home.root)
    return home
