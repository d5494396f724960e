"""Options that several commands of `assay` share, and what they become. Nothing heavy is imported here."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.runtime.exits import reported
from protocol.runtime.home import VARIABLE, Home

if TYPE_CHECKING:
    from assay.commands import Desk

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder, else $ASSAY_HOME, else ~/.assay.")
]
RpcOption = Annotated[str | None, typer.Option(help="URL of an Ethereum node.")]
AccountOption = Annotated[str | None, typer.Option(help="Name of an account under the home folder.")]
DevAccountOption = Annotated[
    int | None, typer.Option(min=0, help="Index of a development key; development chains only.")
]
PasswordOption = Annotated[Path | None, typer.Option(help="File whose first line opens the account.")]
DeploymentOption = Annotated[Path | None, typer.Option(help="Deployment file, else that of the chain.")]
JsonOption = Annotated[bool, typer.Option("--json", help="A versioned JSON envelope on stdout.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Do all but send transactions.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")]


def chosen_account(account: str | None, dev_account: int | None) -> str | None:
    """The setting `account`. Raises SettingsError if both options are given."""
    if account is not None and dev_account is not None:
        from protocol.runtime.settings import SettingsError

        raise SettingsError("expected --account or --dev-account, got both; leave one out")
    return f"dev:{dev_account}" if dev_account is not None else account


def at_home(given: Path | None) -> Home:
    """The home folder; everything below that looks for it finds the same one."""
    home = Home.find(given)
    os.environ[VARIABLE] = str(home.root)
    return home


def desk_of(command: str, home: Path | None, as_json: bool, **flags: object | None) -> Desk:
    """What a command works with. Raises SettingsError."""
    from assay.commands import Desk
    from protocol.runtime.output import Output

    return Desk(at_home(home), flags, Output(command, as_json))


def errors_reported() -> AbstractContextManager[None]:
    """Run a command: errors end in one line and an exit code."""
    from assay.errors import known

    return reported(known)
