"""Memory used by this process, now and at its peak since a chosen moment (Linux: proc(5))."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc/self")


def forget_peak() -> None:
    """Restart the measurement of the peak, if the system allows it."""
    with suppress(OSError):
        (_PROC / "clear_refs").write_text("5")


def peak_memory() -> int | None:
    """Peak resident bytes since `forget_peak` or the process's start; None if the system does not say."""
    return _status("VmHWM:")


def own_memory() -> int | None:
    """Resident bytes of this process that are not mapped from a file; None if the system does not say."""
    return _status("RssAnon:")


def _status(name: str) -> int | None:
    try:
        lines = (_PROC / "status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(name)]
    return int(found[0]) * 1024 if found else None
