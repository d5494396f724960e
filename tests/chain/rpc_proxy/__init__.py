"""A JSON-RPC proxy in front of a chain's node, with faults that a test switches on and off while parties run.

`Faults` has a field for everything that can go wrong with answers. `PRESETS` has ready-made faults by name,
including re-organisations of the chain behind the proxy.
"""

from tests.chain.rpc_proxy.faults import GARBAGE, Faults, Garbage
from tests.chain.rpc_proxy.presets import PRESETS, Preset
from tests.chain.rpc_proxy.proxy import RpcProxy

__all__ = ["GARBAGE", "PRESETS", "Faults", "Garbage", "Preset", "RpcProxy"]
