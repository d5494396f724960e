"""Faults of the services that the party asks: the chain's node (with `tests.chain.rpc_proxy`), the beacon,
other parties.
"""

from __future__ import annotations

from contextlib import ExitStack

from tests.campaign import beacon_proxy, peer_proxy
from tests.campaign.fault import Fault, Needs
from tests.campaign.world import World
from tests.chain.rpc_proxy import PRESETS

BROADCAST = "eth_sendRawTransaction"


class RpcFault(Fault):
    """The party's chain node fails as one of the proxy's presets describes."""

    least = 3.0

    def __init__(self, name: str, preset: str, blocks: bool = False) -> None:
        """`blocks` says whether the party makes no progress until the fault is over."""
        self.name = name
        self.needs = Needs.SENDS if preset == "lost-broadcasts" else Needs.CHAIN
        self.ends_when_felt = blocks
        self._preset = preset
        self._on = ExitStack()

    def apply(self, world: World) -> None:
        """Make the node faulty from the next request on."""
        self._before = self._asked(world)
        self._on.enter_context(PRESETS[self._preset](world.rpc))

    def lift(self, world: World) -> None:
        """Make the node answer truthfully again."""
        self._after = self._asked(world)
        self._on.close()

    def felt(self, world: World) -> bool:
        """Whether the party sent the node a request while it was faulty. If the fault is lost broadcasts,
        only a sent transaction counts.
        """
        return getattr(self, "_after", self._asked(world)) > self._before

    def _asked(self, world: World) -> int:
        return world.rpc.asked[BROADCAST] if self.needs is Needs.SENDS else world.rpc.requests


class Reorganisation(Fault):
    """The newest blocks are replaced by others. Their transactions are dropped or, with `again`, come back
    later.
    """

    needs = Needs.CHAIN
    most = 0.0

    def __init__(self, depth: int, again: bool) -> None:
        self.name = f"re-org, {depth} deep"
        self.depth = depth
        self._preset = f"reorg-{depth}-{'again' if again else 'dropped'}"

    def apply(self, world: World) -> None:
        """Re-organise the chain at once."""
        before = world.devnet.connection.block()
        with PRESETS[self._preset](world.rpc):
            pass
        self._gone = not world.devnet.connection.stands(before.number, before.hash)

    def felt(self, world: World) -> bool:
        """Whether the newest block was replaced."""
        return self._gone


class BeaconFault(Fault):
    """The only beacon relay that the party knows is silent or lies."""

    needs = Needs.BEACON
    least = 3.0
    ends_when_felt = True

    def __init__(self, mode: beacon_proxy.Mode) -> None:
        self.name = f"beacon {mode}"
        self._mode: beacon_proxy.Mode = mode

    def apply(self, world: World) -> None:
        """Make the relay faulty from the next request on."""
        self._before = len(world.beacon.asked)
        world.beacon.mode = self._mode

    def lift(self, world: World) -> None:
        """Make the relay honest again."""
        world.beacon.mode = "honest"
        world.beacon.hang_up()

    def felt(self, world: World) -> bool:
        """Whether the relay was asked since the fault began."""
        return len(world.beacon.asked) > self._before


class PeerFault(Fault):
    """Every other party that the party under test asks over HTTP is faulty."""

    needs = Needs.PEERS
    least = 3.0

    def __init__(self, mode: peer_proxy.Mode) -> None:
        self.name = f"peers {mode}"
        self._mode: peer_proxy.Mode = mode

    def apply(self, world: World) -> None:
        """Make all other parties faulty from the next request on."""
        self._before = self._asked(world)
        for peer in world.peers:
            peer.mode = self._mode

    def lift(self, world: World) -> None:
        """Make all other parties honest again."""
        self._after = self._asked(world)
        for peer in world.peers:
            peer.mode = "honest"
            peer.hang_up()

    def felt(self, world: World) -> bool:
        """Whether any other party was asked during the fault."""
        return getattr(self, "_after", self._asked(world)) > self._before

    def _asked(self, world: World) -> int:
        return sum(len(peer.asked) for peer in world.peers)
