"""A JSON-RPC proxy before a chain's node, with faults that a test switches on and off while parties run.

`Faults` says what may go wrong with answers, `PRESETS` names whole faults for campaigns, re-organisations of the chain
behind it among them.
"""

from tests.chain.rpc_proxy.faults import GARBAGE, Faults, Garbage
from tests.chain.rpc_proxy.presets import PRESETS, Preset
from tests.chain.rpc_proxy.proxy import RpcProxy

__all__ = ["GARBAGE", "PRESETS", "Faults", "Garbage", "Preset", "RpcProxy"]
