"""What several commands of `assay` share besides `protocol.runtime.options`. Nothing heavy is imported here."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocol.runtime.exits import reported
from protocol.runtime.options import at_home

if TYPE_CHECKING:
    from assay.commands import Desk

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Do all but send transactions.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to serve on; 0: any.")]


def desk_of(command: str, home: Path | None, as_json: bool, **flags: object | None) -> Desk:
    """What a command works with. Raises SettingsError."""
    from assay.commands import Desk
    from protocol.runtime.output import Output

    return Desk(at_home(home), flags, Output(command, as_json))


def errors_reported() -> AbstractContextManager[None]:
    """Run a command: errors end in one line and an exit code."""
    from protocol.failures import known

    return reported(known)
