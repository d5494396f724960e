"""The operator's order to a home folder's node: work, make no new bids, or finish and stop.

The order is kept in a file, so that a node still follows it after being killed, and so that a stopped node
can be given an order.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Final

from protocol.commitments.atomic import write_atomically
from protocol.node.format_versions import is_version
from protocol.node.home import Home
from solver.errors import OrdersError

VERSION: Final = 1
"""Version of the file's format."""


class Mode(StrEnum):
    """The node's order. A node that is PAUSED or DRAINING makes no bids. One that is DRAINING ends once
    nothing is left to do.
    """

    WORKING = "working"
    PAUSED = "paused"
    DRAINING = "draining"


WHY: dict[Mode, str] = {
    Mode.PAUSED: "paused: `solver resume` lets it bid again",
    Mode.DRAINING: "draining: it ends what it owes; `solver resume` lets it bid again",
}
"""Why no bid is made, by mode."""


def orders_file(home: Home) -> Path:
    """The file that keeps the order."""
    return home.folder("solver") / "orders.json"


def load_mode(home: Home) -> Mode:
    """Read the last order; WORKING if there was none. Raises OrdersError, HomeError."""
    file = orders_file(home)
    try:
        if not file.exists():
            return Mode.WORKING
        with file.open("rb") as opened:
            order = json.loads(opened.read(1024))
        if not is_version(order["version"], VERSION):
            raise ValueError(f"version {order['version']!r}")
        return Mode(order["mode"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OrdersError(
            f"orders in {file}",
            expected=f"what `solver pause` writes: version {VERSION} and a mode, one of {', '.join(Mode)}",
            got=f"{type(error).__name__}: {error}",
            remedy="delete the file, or say `solver pause`, `solver drain` or `solver resume`",
        ) from error


def keep_mode(home: Home, mode: Mode) -> None:
    """Write the order. Raises HomeError, and OrdersError if the disk does not accept the order."""
    file = orders_file(home)
    try:
        write_atomically(file, json.dumps({"version": VERSION, "mode": mode.value}).encode() + b"\n")
    except OSError as error:
        raise OrdersError(
            f"orders in {file}", expected="to be written", got=error, remedy="see to the disk of --home"
        ) from error
