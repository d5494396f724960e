"""Measures this machine: operations a second by family, hashing, and the disk.

The disk is measured once. Everything else is measured in many runs, of which only the fastest is used, as in
`speeds`, because other work may have slowed down the other runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

import torch

from protocol.commitments.atomic import write_atomically
from protocol.errors import Retryable
from protocol.execution.counting import operations
from protocol.execution.device import WARM_STEPS, executor_on
from protocol.execution.families import Family, speed
from protocol.execution.measured import Measured
from protocol.execution.yardsticks import yardstick
from protocol.node.disk import room
from protocol.program.step import State

SECONDS: Final = 2.0
"""Seconds of timed runs, for each family and for hashing."""
LEAST_RUNS: Final = 5
MOST_RUNS: Final = 2_000
DISK_BYTES: Final = 256 << 20
"""Maximum number of bytes that are written to the disk and read back."""
LEAST_DISK_BYTES: Final = 16 << 20
FILES: Final = 100
"""Number of small files that are written to measure the disk's speed in small files a second."""
SPARE_BYTES: Final = 64 << 20
"""Bytes of disk that measuring leaves free for other programs."""
BLOCK: Final = 4 << 20

Order = tuple[Family, ...]
ORDER: Final[Order] = (Family.PRIMITIVES, Family.FUNCTIONS, Family.CONVOLUTIONS, Family.PRODUCTS)
"""Primitives come first: their time is subtracted from the other families' measurements."""
STAGES: Final = (*map(str, ORDER), "hashing", "disk")


class MeasuringError(Retryable):
    """The disk does not accept the bytes that measuring writes."""


def measure(
    device: torch.device, folder: Path, on_stage: Callable[[str], object], seconds: float = SECONDS
) -> Measured:
    """Measure a device, and the disk of a folder. `on_stage` is called with the name of each of `STAGES` when
    the stage is done. Raises MeasuringError, SelfCheckError.
    """
    rates: dict[Family, float] = {}
    for family in ORDER:
        rates[family] = _operations(family, device, rates, seconds)
        on_stage(str(family))
    hashed = _hashing(device, seconds)
    on_stage("hashing")
    written, read = _disk(folder)
    files = _files(folder)
    on_stage("disk")
    return Measured(
        date=datetime.now(UTC).replace(microsecond=0),
        package=version("assay"),
        torch=torch.__version__,
        operations=rates,
        hashing=hashed,
        written=written,
        read=read,
        files=files,
    )


def _operations(family: Family, device: torch.device, known: Mapping[Family, float], seconds: float) -> float:
    """Operations a second of a family, measured on the family's yardstick. The time that the yardstick spends
    on other families is subtracted.
    """
    work, state = yardstick(family)
    counted = operations(work.program.program, work.kernels)
    executor = executor_on(device)(work)

    def step() -> State:
        nonlocal state
        state = executor.step(state, 1)
        return state

    for _ in range(WARM_STEPS + 1):  # kernels are compiled and tested, and a GPU records the step
        step()
    took = _quickest(step, device, seconds)
    other = {one: count for one, count in counted.items() if count and one is not family and one in known}
    beside = sum(other.values()) / speed(other, known) if other else 0.0
    # Subtract half at most: a yardstick consists mostly of its family.
    return counted[family] / max(took - beside, took / 2)


def _hashing(device: torch.device, seconds: float) -> float:
    """The speed, in bytes a second, at which a state is hashed when its root is computed on the device."""
    work, state = yardstick(Family.PRODUCTS)
    placed = {name: x.to(device) for name, x in state.items()}
    work.program.state_root(placed)  # compiles the kernel on a GPU
    took = _quickest(lambda: work.program.state_root(placed), device, seconds)
    return work.program.state_bytes / took


def _quickest(run: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Seconds of the quickest run. Runs are repeated for `seconds` in all, but at least LEAST_RUNS and at
    most MOST_RUNS times.
    """

    def moments() -> Iterator[float]:
        begun = time.perf_counter()
        yield begun
        for number in range(MOST_RUNS):
            if number >= LEAST_RUNS and time.perf_counter() - begun > seconds:
                return
            run()
            if device.type != "cpu":
                torch.cuda.synchronize(device)
            yield time.perf_counter()

    return max(1e-9, min(after - before for before, after in pairwise(moments())))


def _disk(folder: Path) -> tuple[float, float]:
    """The disk's two speeds in bytes a second: of writing, with fsync, and of reading back. Leaves no file."""
    try:
        size = min(DISK_BYTES, room(folder, SPARE_BYTES)) // BLOCK * BLOCK
        if size < LEAST_DISK_BYTES:
            raise OSError(f"{max(0, size) >> 20} MiB")
        block = os.urandom(BLOCK)  # random bytes, which a file system cannot compress
        with TemporaryFile(dir=folder, prefix=".measuring-", buffering=0) as file:
            begun = time.perf_counter()
            for _ in range(size // BLOCK):
                _write(file.fileno(), block)
            os.fsync(file.fileno())
            written = size / max(1e-9, time.perf_counter() - begun)
            if hasattr(os, "posix_fadvise"):  # read from the disk, not from memory
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            begun = time.perf_counter()
            while file.read(BLOCK):
                pass
            return written, size / max(1e-9, time.perf_counter() - begun)
    except OSError as error:
        raise MeasuringError(
            f"measuring the disk of {folder}",
            expected=f"to write {LEAST_DISK_BYTES >> 20} to {DISK_BYTES >> 20} MiB for a moment",
            got=error.strerror or error,
            remedy="make room on it, then run `solver bench` again; what was measured before stands",
        ) from error


def _files(folder: Path) -> float:
    """The disk's speed in small files a second. The files are written in the same way as the blobs of a
    checkpoint. Leaves no file.
    """
    try:
        with TemporaryDirectory(dir=folder, prefix=".measuring-") as place:
            begun = time.perf_counter()
            for number in range(FILES):
                write_atomically(Path(place, f"{number:02x}", "blob"), number.to_bytes(8, "little"))
            return FILES / max(1e-9, time.perf_counter() - begun)
    except OSError as error:
        raise MeasuringError(
            f"measuring the disk of {folder}",
            expected=f"to write {FILES} small files for a moment",
            got=error.strerror or error,
            remedy="see to the disk, then run `solver bench` again; what was measured before stands",
        ) from error


def _write(descriptor: int, data: bytes) -> None:
    """Write all of `data`. A single call of `os.write` may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
