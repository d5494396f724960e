"""Options that several commands of `assay` share, in addition to those of `protocol.node.options`. Nothing
heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.node.options import MOST_TASK, at_home

if TYPE_CHECKING:
    from assay.commands import Context

AddresseeArgument = Annotated[
    str, typer.Argument(metavar="ACCOUNT", help="An address, dev:<index>, or the name of an account.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Do all but send transactions.")]
FileArgument = Annotated[Path, typer.Argument(help="A task file, such as examples/digits.toml.")]
LinesOption = Annotated[bool, typer.Option("--json", help="A versioned JSON envelope a line on stdout.")]
TaskArgument = Annotated[int, typer.Argument(min=1, max=MOST_TASK, help="A task's id.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")]


def context_of(command: str, home: Path | None, as_json: bool, **flags: object | None) -> Context:
    """The context of a command. `flags` are settings given as options. Raises SettingsError."""
    from assay.commands import Context
    from protocol.node.output import Output

    return Context(at_home(home), flags, Output(command, as_json))
