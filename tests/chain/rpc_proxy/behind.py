"""Answers of a node that is some blocks behind: it shows no block, log, receipt or state above its head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Answer = dict[str, Any]
"""`result` or `error` of a JSON-RPC response."""
Ask = Callable[[str, list[Any]], Answer]
"""Calls a method with its arguments on the real node, which is not behind."""

BLOCK_ARGUMENT: Final = {
    "eth_call": 1,
    "eth_estimateGas": 1,
    "eth_getBalance": 1,
    "eth_getBlockByNumber": 0,
    "eth_getCode": 1,
    "eth_getTransactionCount": 1,
}
"""Position of the block among the arguments, by method."""
BEHIND: Final = {"code": -32000, "message": "header not found"}
"""Geth's error for a block that it does not have."""


def answer_behind(ask: Ask, head: int, method: str, arguments: list[Any]) -> Answer:
    """The answer of a node whose newest block is `head`."""
    if method == "eth_blockNumber":
        return {"result": hex(head)}
    if method == "eth_getLogs":
        return _logs(ask, head, arguments[0])
    if method in BLOCK_ARGUMENT:
        place = BLOCK_ARGUMENT[method]
        block = arguments[place] if place < len(arguments) else "latest"
        if block in ("latest", "pending"):
            block = hex(head)
        elif not _has(ask, head, block):
            return {"result": None} if method == "eth_getBlockByNumber" else {"error": BEHIND}
        return ask(method, [*arguments[:place], block, *arguments[place + 1 :]])
    found = ask(method, arguments)
    result = found.get("result")
    if not isinstance(result, dict):
        return found
    block = result["number" if method == "eth_getBlockByHash" else "blockNumber"]
    if block is None or int(block, 16) <= head:
        return found
    if method == "eth_getTransactionByHash":
        return {"result": result | {"blockHash": None, "blockNumber": None}}
    return {"result": None}


def _has(ask: Ask, head: int, block: Any) -> bool:
    if isinstance(block, dict):
        found = ask("eth_getBlockByHash", [block["blockHash"], False]).get("result")
        return found is None or int(found["number"], 16) <= head
    return not block.startswith("0x") or int(block, 16) <= head


def _logs(ask: Ask, head: int, query: dict[str, Any]) -> Answer:
    """The logs up to the head. A range that goes further is cut off at the head, as geth does."""
    if "blockHash" in query:
        if not _has(ask, head, query):
            return {"error": {"code": -32000, "message": "unknown block"}}
        return ask("eth_getLogs", [query])
    if int(query["fromBlock"], 16) > head:
        return {"result": []}
    return ask("eth_getLogs", [query | {"toBlock": hex(min(head, int(query["toBlock"], 16)))}])
