"""`solver bench`: measure this machine and keep what was measured."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

from protocol.execution.device import checked, device_name
from protocol.execution.measured import Measured, keep, measured_file
from protocol.execution.measuring import STAGES, MeasuringError, measure
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.node.progress_bar import progress_bar
from protocol.node.settings import load
from protocol.numerics.self_check import self_check
from solver.settings import SolverSettings


def bench(home: Home, device: str | None, as_json: bool) -> None:
    """Raises MeasuringError, MeasuredError, DeviceError, SelfCheckError; then what was measured before stands."""
    settings = load(SolverSettings, "solver", home.config, {"device": device})
    self_check()
    where = checked(settings.values.device)
    name, folder = device_name(where), home.folder()
    shown = sys.stderr.isatty() and not as_json
    bar: Any = progress_bar("measuring {task.description}", "") if shown else None
    with bar or nullcontext():
        row = bar.add_task(STAGES[0], total=len(STAGES)) if bar else None

        def done(stage: str) -> None:
            if bar:
                after = STAGES[STAGES.index(stage) + 1 :]
                bar.update(row, advance=1, description=next(iter(after), ""))

        made = measure(where, folder, done)
    try:
        keep(home, name, made)
    except OSError as error:
        raise MeasuringError(
            f"measured speeds in {measured_file(home)}",
            expected="to be written",
            got=error.strerror,
            remedy="see to the disk of --home, then run `solver bench` again",
        ) from error
    output = Output("solver bench", as_json)
    for line in _lines(name, made):
        output.say(line)
    output.say(f"kept in {measured_file(home)}; a node that runs reads it when it is started again")
    if "speed" in settings.values.model_fields_set:
        output.say(f"not used: `speed` is set ({settings.sources['speed']})")
    output.result({"device": name, "file": str(measured_file(home)), **made.model_dump(mode="json")})


def _lines(name: str, made: Measured) -> list[str]:
    lines = [name]
    lines += [f"  {family:14} {rate:.3g} operations a second" for family, rate in made.operations.items()]
    speeds = {"hashing": made.hashing, "disk, written": made.written, "disk, read": made.read}
    return [*lines, *(f"  {what:14} {rate / 1e6:,.0f} MB a second" for what, rate in speeds.items())]
