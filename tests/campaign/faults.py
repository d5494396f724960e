"""All faults by name, in the order of the table. Each case makes its own instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tests.campaign.clock_faults import HOUR, ClockJump
from tests.campaign.fault import Fault
from tests.campaign.file_faults import DiskFull, FileFault, cut, damage
from tests.campaign.network_faults import BeaconFault, PeerFault, Reorganisation, RpcFault
from tests.campaign.peer_proxy import MODES
from tests.campaign.process_faults import Killed, Slowed, Stopped

SHALLOW: Final = range(1, 5)
DEEP: Final = range(5, 9)
"""The depths of re-organisations are those in `SHALLOW` and `DEEP`. At even depths the reverted transactions
come back by themselves.
"""

_ALL: Final[tuple[Callable[[], Fault], ...]] = (
    Killed,
    Stopped,
    Slowed,
    partial(ClockJump, HOUR),
    partial(ClockJump, -HOUR),
    DiskFull,
    partial(FileFault, "database", cut, "cut"),
    partial(FileFault, "database", damage, "damaged"),
    partial(FileFault, "journal", cut, "cut"),
    partial(FileFault, "journal", damage, "damaged"),
    partial(RpcFault, "RPC errors", "errors", True),
    partial(RpcFault, "RPC drops", "drops"),
    partial(RpcFault, "RPC slow", "slow"),
    partial(RpcFault, "RPC stale", "stale"),
    partial(RpcFault, "RPC of another chain", "wrong-chain", True),
    partial(RpcFault, "RPC loses broadcasts", "lost-broadcasts", True),
    *(partial(Reorganisation, depth, depth % 2 == 0) for depth in (*SHALLOW, *DEEP)),
    partial(BeaconFault, "silent"),
    partial(BeaconFault, "lying"),
    *(partial(PeerFault, mode) for mode in MODES if mode != "honest"),
)
FAULTS: Final[Mapping[str, Callable[[], Fault]]] = {make().name: make for make in _ALL}
