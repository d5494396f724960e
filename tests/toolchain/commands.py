"""Parses command lines from documents as the commands would."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer


def parsed(command: Sequence[str]) -> dict[str, Any]:
    """The parameters that a command gets from a command line. The command is not run. Raises for an unknown
    option.
    """
    program, name, *arguments = command
    group: Any = typer.main.get_command(import_module(f"{Path(program).name}.cli").app)
    context = group.commands[name].make_context(name, list(arguments))
    found: dict[str, Any] = context.params
    return found
