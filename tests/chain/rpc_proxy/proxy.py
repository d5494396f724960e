"""The proxy: it forwards requests to a node and applies `Faults`."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from types import TracebackType
from typing import Any, Final, Self

import requests
from eth_utils.crypto import keccak

from tests.chain.rpc_proxy.behind import Answer, answer_behind
from tests.chain.rpc_proxy.faults import Faults, Garbage
from tests.chain.rpc_proxy.reorganising import reorganise
from tests.listener import Handler, Listener

PAGE: Final = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
PIECE: Final = 1 << 16
"""Number of bytes of an endless body that are sent at a time."""


class RpcProxy:
    """Listens on a free loopback port until it is closed. `asked` counts calls by method, and `requests`
    counts HTTP requests; a batch is one request with several calls.
    """

    def __init__(self, upstream: str, seed: int = 1) -> None:
        self.upstream = upstream
        """The address of the node behind the proxy. A test may change it to that of another node."""
        self.faults = Faults()
        self.asked: Counter[str] = Counter()
        self.requests = 0
        self.sent = 0
        """Number of bytes of endless or trickling bodies that were written to sockets."""
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._session = requests.Session()
        self._listener = Listener(_Handler, self)
        self.url = self._listener.url

    def close(self) -> None:
        """Stop, and close open connections."""
        self._listener.close()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def hang_up(self) -> None:
        """Close every open connection, as a server does when it restarts."""
        self._listener.hang_up()

    def reorganise(self, depth: int, *, again: bool = False) -> list[str]:
        """Replace the newest `depth` blocks of the chain behind the proxy (see `reorganising.reorganise`)."""
        return reorganise(self._ask, depth, again=again)

    def is_garbled(self, asked: Any) -> bool:
        """Whether to replace the reply to a call or a batch by garbage. The choice is random, with the
        probability `faults.garbage_share`.
        """
        faults, queries = self.faults, asked if isinstance(asked, list) else [asked]
        if faults.garbage is None or all(
            faults.garbage_method not in (None, query["method"]) for query in queries
        ):
            return False
        with self._lock:
            return self._random.random() < faults.garbage_share

    def reply(self, asked: Any) -> Any:
        """The reply to a call or a batch; None if the request gets no reply."""
        with self._lock:
            self.requests += 1
        if isinstance(asked, list) and not self.faults.batches:
            error = {"code": -32600, "message": "batch requests are not supported"}
            return {"jsonrpc": "2.0", "id": None, "error": error}
        queries = asked if isinstance(asked, list) else [asked]
        try:
            answers = [(query["id"], self.answer(query)) for query in queries]
        except requests.RequestException:
            return None  # the node behind it is gone
        if any(answer is None for _, answer in answers):
            return None
        replies = [{"jsonrpc": "2.0", "id": number, **(answer or {})} for number, answer in answers]
        return replies if isinstance(asked, list) else replies[0]

    def answer(self, query: dict[str, Any]) -> Answer | None:
        """The answer to one call; None if it gets no answer."""
        method, arguments = str(query["method"]), list(query.get("params") or [])
        faults = self.faults
        with self._lock:
            self.asked[method] += 1
            dropped = self._random.random() < faults.drop_share
            stale = self._random.random() < faults.stale_share
        self._listener.ended.wait(faults.delay)
        if faults.down or dropped:
            return None
        if method == "eth_sendRawTransaction":
            if faults.refuse_broadcasts is not None:
                return {"error": {"code": -32000, "message": faults.refuse_broadcasts}}
            if faults.lose_broadcasts:
                return {"result": "0x" + keccak(bytes.fromhex(arguments[0][2:])).hex()}
            answer = self._ask(method, arguments)
            if faults.fail_broadcasts is None:
                return answer
            return {"error": {"code": -32000, "message": faults.fail_broadcasts}}
        if faults.error is not None:
            return {"error": {"code": -32005, "message": faults.error}}
        if method == "eth_chainId" and faults.chain_id is not None:
            return {"result": hex(faults.chain_id)}
        if method == "eth_getLogs" and faults.logs_range is not None and "fromBlock" in arguments[0]:
            blocks = int(arguments[0]["toBlock"], 16) - int(arguments[0]["fromBlock"], 16) + 1
            if blocks > faults.logs_range:
                return {"error": {"code": -32602, "message": "query exceeds max block range"}}
        if method == "eth_getLogs" and faults.no_logs:
            return {"result": []}
        if stale:
            head = int(self._ask("eth_blockNumber", [])["result"], 16)
            return answer_behind(self._ask, max(0, head - faults.stale_blocks), method, arguments)
        return self._ask(method, arguments)

    def _ask(self, method: str, arguments: list[Any]) -> Answer:
        query: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": arguments}
        found: Answer = self._session.post(self.upstream, json=query, timeout=20).json()
        return {key: found[key] for key in ("result", "error") if key in found}


class _Handler(Handler):
    def setup(self) -> None:
        super().setup()
        self.proxy: RpcProxy = self.server.owner
        self.earlier: Any = {"jsonrpc": "2.0", "id": 0, "result": "0x0"}
        """The reply to the connection's previous request."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed
            self.close_connection = True
            return
        asked = json.loads(body)
        found, faults = self.proxy.reply(asked), self.proxy.faults
        if found is None:
            self.close_connection = True
        elif faults.status is not None:
            self._send(b"", status=faults.status)
        elif faults.garbage is not None and self.proxy.is_garbled(asked):
            self._send_garbage(faults.garbage, found)
        else:
            self._send(json.dumps(found).encode())
        self.earlier = found or self.earlier

    def _send_garbage(self, kind: Garbage, found: Any) -> None:
        body = json.dumps(found).encode()
        if kind == "no JSON":
            self._send(PAGE)
        elif kind == "no object":
            self._send(b'["0x1"]')
        elif kind == "another id":
            self._send(json.dumps(self.earlier).encode())
        elif kind == "no hex":
            replies = found if isinstance(found, list) else [found]
            wrong = [{"jsonrpc": "2.0", "id": reply["id"], "result": "soon"} for reply in replies]
            self._send(json.dumps(wrong if isinstance(found, list) else wrong[0]).encode())
        elif kind == "cut short":
            self._send(body[: len(body) // 2], length=len(body))
            self.close_connection = True
        elif kind == "huge":
            self._send(b"", length=1 << 50)
            self._go_on(repeat(b" " * PIECE), 0.0)
        else:
            self._send(b"", length=len(body))
            self._go_on((body[at : at + 1] for at in range(len(body))), self.proxy.faults.pause)

    def _go_on(self, pieces: Iterator[bytes], pause: float) -> None:
        for piece in pieces:
            if not self.holds(pause):
                self.close_connection = True
                return
            self.wfile.write(piece)
            self.proxy.sent += len(piece)

    def _send(self, body: bytes, status: int = 200, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
