"""Re-organisations of a development chain: anvil_reorg replaces its newest blocks by as many others."""

from __future__ import annotations

from itertools import chain
from typing import Any

from tests.chain.rpc_proxy.behind import Ask


def reorganise(ask: Ask, depth: int, *, again: bool = False) -> list[str]:
    """Replace the newest `depth` blocks; returns the hashes of the transactions that were in them, in order.

    Without `again`, the new blocks are empty and anvil forgets the transactions: they are mined only if
    somebody sends them again. With `again`, each transaction is mined one block later than before. The
    transactions of the newest replaced block belong in the block after the new ones, so they are sent again.
    If a block is mined during the call, that block is replaced instead of the oldest of the `depth` blocks,
    and its transactions are lost.
    """
    head = int(_result(ask, "eth_blockNumber"), 16)
    blocks = [
        _result(ask, "eth_getBlockByNumber", hex(number), False)["transactions"]
        for number in range(head - depth + 1, head + 1)
    ]
    raws = [[_result(ask, "eth_getRawTransactionByHash", hash_) for hash_ in block] for block in blocks]
    kept = enumerate(raws[:-1], 1) if again else ()
    _result(ask, "anvil_reorg", depth, [[raw, place] for place, block in kept for raw in block])
    for raw in raws[-1] if again else ():
        _result(ask, "eth_sendRawTransaction", raw)
    return list(chain.from_iterable(blocks))


def _result(ask: Ask, method: str, *arguments: Any) -> Any:
    found = ask(method, list(arguments))
    assert "error" not in found, f"{method}: {found}"
    return found["result"]
