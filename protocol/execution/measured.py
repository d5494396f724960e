"""This machine's measured speeds, kept in a file in the home folder. A solver uses them for bids and
admission unless its operator sets `speed`.

Each device has its own measurement, because a machine may compute with or without its GPU. `measuring` makes
the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.commitments.atomic import write_atomically
from protocol.errors import AssayError
from protocol.execution.families import Family
from protocol.node.format_versions import only
from protocol.node.home import Home
from protocol.tasks.task import FILE_RATE

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MAX_BYTES: Final = 1 << 20
"""Size limit of the file; one measurement takes half a kilobyte."""


class MeasuredError(AssayError):
    """The file of measured speeds is malformed."""


class Measured(BaseModel):
    """A device's measurement. `operations` are per second, by family. `hashing` is the speed of computing a
    state's root, and `written` and `read` are the speeds of the home folder's disk, all three in bytes a
    second. `files` is how many small files a second the disk takes if each must be on the disk before the
    next is written; measurements by earlier releases lack it, and FILE_RATE is assumed. `package` and `torch`
    are the versions that were measured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    date: datetime
    package: str
    torch: str
    operations: dict[Family, Rate]
    hashing: Rate
    written: Rate
    read: Rate
    files: Rate = FILE_RATE

    @property
    def slowest(self) -> float:
        """Operations a second of the slowest family."""
        return min(self.operations.values())

    @property
    def fastest(self) -> float:
        """Operations a second of the fastest family."""
        return max(self.operations.values())


class _File(BaseModel):
    """The file's contents: measurements by the device's name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Annotated[int, only(1)] = 1
    devices: dict[str, Measured] = {}


def measured_file(home: Home) -> Path:
    """The path of the file of measurements."""
    return home.root / "measured.json"


def measured(home: Home, device: str) -> Measured | None:
    """A device's measurement; None if not all families were measured. Raises MeasuredError."""
    found = _read(measured_file(home)).devices.get(device)
    return found if found is not None and set(found.operations) == set(Family) else None


def slowest(found: Iterable[Measured | None]) -> Measured | None:
    """The measurement of the slowest of several devices, because a task may run on any of them. None if a
    measurement is missing.
    """
    every = list(found)
    known = [one for one in every if one is not None]
    return min(known, key=lambda one: one.slowest, default=None) if len(known) == len(every) else None


def keep(home: Home, device: str, made: Measured) -> None:
    """Write a device's measurement, replacing an earlier one. Raises MeasuredError, OSError."""
    file = measured_file(home)
    devices = _read(file).devices | {device: made}
    write_atomically(file, _File(devices=devices).model_dump_json(indent=2).encode() + b"\n")


def _read(file: Path) -> _File:
    if not file.is_file():
        return _File()
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ValueError(f"{file.stat().st_size} bytes")
        return _File.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        raise MeasuredError(
            f"measured speeds in {file}",
            expected="what `solver bench` wrote",
            got=f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else error,
            remedy="delete the file and run `solver bench`",
        ) from error
