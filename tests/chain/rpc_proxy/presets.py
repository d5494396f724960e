"""Ready-made faults by name. A fault is applied to a proxy when its context begins and removed when the
context ends.

Use: `with PRESETS["stale"](proxy): ...`. A re-organisation happens when its context begins; the end of the
context does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tests.chain.rpc_proxy.faults import GARBAGE
from tests.chain.rpc_proxy.proxy import RpcProxy

Preset = Callable[[RpcProxy], AbstractContextManager[None]]

DEPTHS: Final = range(1, 9)
"""Depths of re-organisations, up to the development chain's `reorg_depth` (`protocol/chain/chains.toml`)."""


@contextmanager
def _faulty(proxy: RpcProxy, *, renewed: bool = False, **fields: Any) -> Iterator[None]:
    """Set fields of the proxy's faults inside the context. With `renewed`, also close the proxy's open
    connections when the context begins.
    """
    before = proxy.faults
    proxy.faults = replace(before, **fields)
    if renewed:
        proxy.hang_up()
    try:
        yield
    finally:
        proxy.faults = replace(proxy.faults, **{name: getattr(before, name) for name in fields})


@contextmanager
def _reorganised(proxy: RpcProxy, *, depth: int, again: bool) -> Iterator[None]:
    proxy.reorganise(depth, again=again)
    yield


def _fields(**fields: Any) -> Preset:
    return partial(_faulty, **fields)


PRESETS: Final[dict[str, Preset]] = {
    "down": _fields(down=True, renewed=True),
    "drops": _fields(drop_share=0.3),
    "errors": _fields(error="internal error"),
    "unavailable": _fields(status=503),
    "rate-limited": _fields(status=429),
    "slow": _fields(delay=1.0),
    "stale": _fields(stale_share=0.3),
    "stale-8": _fields(stale_share=0.3, stale_blocks=8),
    # A client asks for the chain id when it opens a connection.
    "wrong-chain": _fields(chain_id=5, renewed=True),
    "lost-broadcasts": _fields(lose_broadcasts=True),
    "refused-broadcasts": _fields(refuse_broadcasts="transaction pool is full"),
    "no-batches": _fields(batches=False),
    **{f"garbage-{kind.replace(' ', '-')}": _fields(garbage=kind) for kind in GARBAGE},
    **{f"reorg-{depth}-dropped": partial(_reorganised, depth=depth, again=False) for depth in DEPTHS},
    **{f"reorg-{depth}-again": partial(_reorganised, depth=depth, again=True) for depth in DEPTHS},
}
