"""A JSON-RPC proxy before a chain's node, with faults that a test switches on and off while parties run.

Reads may come from a node that is some blocks behind: then no block, log, receipt or state above its head is shown, in
the way in which nodes of that kind answer. Everything else is passed on as it is.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

import requests
from eth_utils.crypto import keccak

BLOCK_ARGUMENT: Final = {
    "eth_call": 1,
    "eth_estimateGas": 1,
    "eth_getBalance": 1,
    "eth_getBlockByNumber": 0,
    "eth_getCode": 1,
    "eth_getTransactionCount": 1,
}
"""Place of the block among the arguments of a read."""
BEHIND: Final = {"code": -32000, "message": "header not found"}
"""What geth says of a block that it does not have."""


@dataclass
class Faults:
    """What goes wrong. All of it may be changed at any time; shares are probabilities of one request."""

    down: bool = False
    """No answer: the connection is closed."""
    drop_share: float = 0.0
    """Like `down`, for some requests."""
    error: str | None = None
    """Every read is answered with this error."""
    delay: float = 0.0
    """Seconds before each answer."""
    stale_share: float = 0.0
    """Reads that are answered by a node that is `stale_blocks` behind."""
    stale_blocks: int = 2
    lose_broadcasts: bool = False
    """Transactions are acknowledged and thrown away."""
    chain_id: int | None = None
    """Another chain id than the node's."""
    batches: bool = True
    """Whether several questions in one request are answered."""
    logs_range: int | None = None
    """Blocks that may be asked for at once; more are refused."""


class RpcProxy:
    """Listens on a free port of loopback until closed. `asked` counts questions by method, `requests` those of HTTP."""

    def __init__(self, upstream: str, seed: int = 1) -> None:
        self.upstream = upstream
        """May be changed too: then another node stands behind the same address."""
        self.faults = Faults()
        self.asked: Counter[str] = Counter()
        self.requests = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._session = requests.Session()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Connections that are open end with their clients."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def hang_up(self) -> None:
        """Close every connection that is open and idle, as a server does that is restarted."""
        for handler in list(self._server.handlers):
            handler.request.shutdown(socket.SHUT_RDWR)

    def reply(self, asked: Any) -> Any:
        """The reply to one question, or to several in one request; None for none at all."""
        with self._lock:
            self.requests += 1
        if isinstance(asked, list) and not self.faults.batches:
            error = {"code": -32600, "message": "batch requests are not supported"}
            return {"jsonrpc": "2.0", "id": None, "error": error}
        queries = asked if isinstance(asked, list) else [asked]
        answers = [(query["id"], self.answer(query)) for query in queries]
        if any(answer is None for _, answer in answers):
            return None
        replies = [{"jsonrpc": "2.0", "id": number, **(answer or {})} for number, answer in answers]
        return replies if isinstance(asked, list) else replies[0]

    def answer(self, query: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to one question; None for none at all."""
        method, arguments = str(query["method"]), list(query.get("params") or [])
        faults = self.faults
        with self._lock:
            self.asked[method] += 1
            dropped = self._random.random() < faults.drop_share
            stale = self._random.random() < faults.stale_share
        time.sleep(faults.delay)
        if faults.down or dropped:
            return None
        if method == "eth_sendRawTransaction":
            if faults.lose_broadcasts:
                return {"result": "0x" + keccak(bytes.fromhex(arguments[0][2:])).hex()}
            return self._ask(method, arguments)
        if faults.error is not None:
            return {"error": {"code": -32005, "message": faults.error}}
        if method == "eth_chainId" and faults.chain_id is not None:
            return {"result": hex(faults.chain_id)}
        if method == "eth_getLogs" and faults.logs_range is not None and "fromBlock" in arguments[0]:
            blocks = int(arguments[0]["toBlock"], 16) - int(arguments[0]["fromBlock"], 16) + 1
            if blocks > faults.logs_range:
                return {"error": {"code": -32602, "message": "query exceeds max block range"}}
        if stale:
            head = int(self._ask("eth_blockNumber", [])["result"], 16)
            return self._behind(max(0, head - faults.stale_blocks), method, arguments)
        return self._ask(method, arguments)

    def _ask(self, method: str, arguments: list[Any]) -> dict[str, Any]:
        query: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": arguments}
        found: dict[str, Any] = self._session.post(self.upstream, json=query, timeout=20).json()
        return {key: found[key] for key in ("result", "error") if key in found}

    def _behind(self, head: int, method: str, arguments: list[Any]) -> dict[str, Any]:
        """The answer of a node whose newest block is `head`."""
        if method == "eth_blockNumber":
            return {"result": hex(head)}
        if method == "eth_getLogs":
            return self._logs_behind(head, arguments[0])
        if method in BLOCK_ARGUMENT:
            place = BLOCK_ARGUMENT[method]
            block = arguments[place] if place < len(arguments) else "latest"
            if block in ("latest", "pending"):
                block = hex(head)
            elif not self._has(head, block):
                return {"result": None} if method == "eth_getBlockByNumber" else {"error": BEHIND}
            return self._ask(method, [*arguments[:place], block, *arguments[place + 1 :]])
        found = self._ask(method, arguments)
        result = found.get("result")
        if not isinstance(result, dict):
            return found
        block = result["number" if method == "eth_getBlockByHash" else "blockNumber"]
        if block is None or int(block, 16) <= head:
            return found
        if method == "eth_getTransactionByHash":
            return {"result": result | {"blockHash": None, "blockNumber": None}}
        return {"result": None}

    def _has(self, head: int, block: Any) -> bool:
        if isinstance(block, dict):
            found = self._ask("eth_getBlockByHash", [block["blockHash"], False]).get("result")
            return found is None or int(found["number"], 16) <= head
        return not block.startswith("0x") or int(block, 16) <= head

    def _logs_behind(self, head: int, query: dict[str, Any]) -> dict[str, Any]:
        """Logs up to the head. A range that goes further is answered as if it ended there, as geth does."""
        if "blockHash" in query:
            known = self._has(head, query)
            return (
                self._ask("eth_getLogs", [query])
                if known
                else {"error": {"code": -32000, "message": "unknown block"}}
            )
        if int(query["fromBlock"], 16) > head:
            return {"result": []}
        return self._ask("eth_getLogs", [query | {"toBlock": hex(min(head, int(query["toBlock"], 16)))}])


class _Server(ThreadingHTTPServer):
    proxy: RpcProxy
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self.handlers: set[_Handler] = set()
        super().__init__(*arguments)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.handlers.add(self)

    def finish(self) -> None:
        self.server.handlers.discard(self)
        super().finish()

    def do_POST(self) -> None:
        found = self.server.proxy.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if found is None:
            self.close_connection = True
            return
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
