"""The clock of the party's machine jumps by an hour, ahead or back, and stays wrong. The preloaded library
libfaketime makes it jump.

Only the wall clock jumps. The monotonic clock does not, just as it does not when an administrator sets the
time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import cache
from math import inf
from pathlib import Path
from typing import Final

from libfaketime import get_reload_information

from tests.campaign.fault import Fault, Needs
from tests.campaign.process_faults import party_of
from tests.campaign.world import World

HOUR: Final = 3_600


class ClockJump(Fault):
    """The clock is wrong by `seconds` from the stage to the end of the case."""

    needs = Needs.PROCESS
    most = inf

    def __init__(self, seconds: int) -> None:
        self.name = f"clock jumps {abs(seconds) / HOUR:g} h {'ahead' if seconds > 0 else 'back'}"
        self._seconds = seconds

    def prepare(self, world: World) -> None:
        """Make the party under test take its clock's offset from a file. The offset is 0 until the fault begins."""
        self._offset = world.folder / "clock"
        self._set(0)
        world.environment |= preloading() | {"FAKETIME_TIMESTAMP_FILE": str(self._offset)}

    def apply(self, world: World) -> None:
        """Set the clock ahead or back."""
        self._lines = len(party_of(world).lines())
        self._set(self._seconds)

    def felt(self, world: World) -> bool:
        """Whether a line that the party has logged since the fault began has the wrong time.

        The log of a typed command has no times. For such a command: whether it has read the new offset,
        judged by the access time of the offset's file. A mount with `noatime` does not keep access times.
        """
        lines, now = party_of(world).lines(), datetime.now(UTC)
        if not any("timestamp" in line for line in lines):
            status = self._offset.stat()
            return status.st_atime_ns > status.st_mtime_ns
        stamps = [line.get("timestamp") for line in lines[self._lines :]]
        times = [datetime.fromisoformat(stamp) for stamp in stamps if isinstance(stamp, str)]
        return any(abs((time - now).total_seconds()) > HOUR / 2 for time in times)

    def _set(self, seconds: int) -> None:
        new = Path(f"{self._offset}.new")
        new.write_text(f"{seconds:+d}\n")
        os.replace(new, self._offset)


def preloading() -> dict[str, str]:
    """The environment variables that preload libfaketime into a process."""
    _, found = get_reload_information()
    return dict(found)


@cache
def may_jump() -> str | None:
    """Why the clock of a process cannot be set on this machine; None if it can."""
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **preloading(), "FAKETIME": f"+{HOUR}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if told.returncode or float(told.stdout) < time.time() + HOUR / 2:
        return told.stderr.strip() or "the library that is preloaded has no effect"
    return None
