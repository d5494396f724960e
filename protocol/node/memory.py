"""How much memory this process uses at most, between two moments (Linux: proc(5))."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc/self")


def forget_peak() -> None:
    """Count the largest use anew from now on, where the system lets a process do so."""
    with suppress(OSError):
        (_PROC / "clear_refs").write_text("5")


def peak_memory() -> int | None:
    """Most resident bytes since `forget_peak`, or since the process began; None where the system does not say."""
    try:
        lines = (_PROC / "status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None
