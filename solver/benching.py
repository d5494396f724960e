"""`solver bench`: measures this machine and saves the measurement."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch

from protocol.execution.device import checked, device_name
from protocol.execution.measured import Measured, keep, measured_file
from protocol.execution.measuring import STAGES, MeasuringError, measure
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.node.progress_bar import progress_bar
from protocol.node.settings import load
from protocol.numerics.self_check import self_check
from solver.settings import SolverSettings


def bench(home: Home, flags: Mapping[str, object], as_json: bool) -> None:
    """Measure all training devices, and save each measurement before the next device is measured. Raises
    SettingsError, HomeError, MeasuringError, MeasuredError, DeviceError, SelfCheckError. The devices not yet
    measured then keep their previous measurements.
    """
    settings = load(SolverSettings, "solver", home.config, flags)
    self_check()
    output, found = Output("solver bench", as_json), []
    for device in settings.values.training_devices:
        where = checked(device)
        name, made = device_name(where), _measured(where, home, as_json)
        _keep(home, name, made)
        for line in _lines(name, made):
            output.say(line)
        found.append({"device": name, **made.model_dump(mode="json")})
    output.say(f"kept in {measured_file(home)}; a node that runs reads it when it is started again")
    if "speed" in settings.values.model_fields_set:
        output.say(f"not used: `speed` is set ({settings.sources['speed']})")
    output.result({"file": str(measured_file(home)), "devices": found})


def _measured(where: torch.device, home: Home, as_json: bool) -> Measured:
    shown = sys.stderr.isatty() and not as_json
    bar: Any = progress_bar("measuring {task.description}", "") if shown else None
    with bar or nullcontext():
        row = bar.add_task(STAGES[0], total=len(STAGES)) if bar else None

        def done(stage: str) -> None:
            if bar:
                after = STAGES[STAGES.index(stage) + 1 :]
                bar.update(row, advance=1, description=next(iter(after), ""))

        return measure(where, home.folder(), done)


def _keep(home: Home, name: str, made: Measured) -> None:
    try:
        keep(home, name, made)
    except OSError as error:
        raise MeasuringError(
            f"measured speeds in {measured_file(home)}",
            expected="to be written",
            got=error.strerror,
            remedy="see to the disk of --home, then run `solver bench` again",
        ) from error


def _lines(name: str, made: Measured) -> list[str]:
    lines = [name]
    lines += [f"  {family:14} {rate:.3g} operations a second" for family, rate in made.operations.items()]
    speeds = {"hashing": made.hashing, "disk, written": made.written, "disk, read": made.read}
    lines += [f"  {what:14} {rate / 1e6:,.0f} MB a second" for what, rate in speeds.items()]
    return [*lines, f"  {'disk, files':14} {made.files:,.0f} a second"]
