"""The names that submitters give their tasks, read from the bundle's manifest if the bundle is in the home
folder.
"""

from __future__ import annotations

import re
from typing import Final

from protocol.node.documents import parse_json
from protocol.node.home import Home

MOST_BYTES: Final = 1 << 20
"""Limit on the bytes of a manifest: a longer one is not searched for a name."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")  # the pattern of protocol.tasks.bundles.manifest


def task_name(home: Home, bundle_hash: bytes) -> str | None:
    """The name in a bundle's manifest; None if the bundle is not in the home folder, or if its manifest is
    damaged or too long.

    Does not use `protocol.tasks.bundles`, which checks the whole manifest but loads torch.
    """
    file = home.root / "bundles" / bundle_hash.hex() / "manifest.json"
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        found = parse_json(data) if len(data) <= MOST_BYTES else None
    except (OSError, ValueError):
        return None
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else None
