"""How much may be written to a disk that others need too: one's own database above all."""

from __future__ import annotations

import shutil
from pathlib import Path


def room(folder: Path, spare: int) -> int:
    """Bytes that may still be written below a folder, which exists: all that is free but `spare` of them, or but a
    tenth of the disk where that is less. Negative where less than that is free. Raises OSError.
    """
    usage = shutil.disk_usage(folder)
    return usage.free - min(spare, usage.total // 10)
