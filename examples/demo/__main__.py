"""`python -m examples.demo`, which `make demo` runs: plays the sixteen stories and writes build/demo/report.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from examples.demo.command import FOLDER, demo
from protocol.node.exits import reported
from protocol.node.options import JsonOption
from protocol.node.output import Output


def main(
    folder: Annotated[Path, typer.Option(help="Folder for logs and the report.")] = FOLDER,
    as_json: JsonOption = False,
) -> None:
    """Sixteen stories on their own development chain: honest, cheating and falsely accused solvers."""
    output = Output("demo", as_json)
    with reported():
        code, report = demo(output.say, folder)
        output.result(report)
    raise typer.Exit(int(code))


if __name__ == "__main__":
    typer.run(main)
