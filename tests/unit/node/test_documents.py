"""Parsing a stranger's JSON gives a value or an error, whatever Python's recursion limit is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from protocol.chain.connection import Connection
from protocol.chain.errors import RpcUnavailable
from protocol.node.documents import parse_json
from tests.toolchain.project import REPOSITORY

OWN = {
    "assay/data/safetensors_files.py": "a header that safetensors has parsed before",
    "assay/notes.py": "notes in the home folder",
    "protocol/chain/abi.py": "the package's contracts",
    "protocol/chain/duties.py": "the package's table of gas",
    "protocol/execution/machine_check.py": "a child process",
    "protocol/execution/workers/pool.py": "a child process",
    "protocol/execution/workers/worker.py": "the parent process",
    "protocol/node/monitoring/alerts.py": "a database in the home folder",
    "protocol/node/monitoring/outbox.py": "a database in the home folder",
    "protocol/tasks/bundles/manifest.py": "a manifest that pydantic has parsed before",
    "solver/control.py": "a process of the same user, or of root",
    "solver/orders.py": "a file in the home folder",
}
"""Modules that may use the standard library's JSON parser. Each value says where the text that the module
parses comes from.
"""


def test_strangers_json_is_not_parsed_by_the_standard_library() -> None:
    files = [
        file
        for party in ("assay", "protocol", "solver", "verifier")
        for file in REPOSITORY.glob(f"{party}/**/*.py")
    ]
    found = {str(file.relative_to(REPOSITORY)) for file in files if "json.load" in file.read_text()}
    assert found == set(OWN)


@pytest.mark.parametrize("data", [b"[" * 1_000_000, b'{"a":' * 1_000_000, b"", b"{", b"\xff", b"1" * 10_000])
def test_what_is_no_json_is_an_error_though_the_limit_is_high(data: bytes) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)  # as py_ecc does
    try:
        with pytest.raises(ValueError, match="Invalid JSON"):
            parse_json(data)
    finally:
        sys.setrecursionlimit(before)


def test_what_is_json_is_its_value() -> None:
    assert parse_json(b'{"id": 1, "result": ["0x", null, true, 1.5]}') == {
        "id": 1,
        "result": ["0x", None, True, 1.5],
    }


class _Nested(BaseHTTPRequestHandler):
    """A node of the chain that answers each request with a million brackets."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = b"[" * 1_000_000
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Nested)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_node_that_answers_with_brackets_ends_nobody(url: str) -> None:
    """With the standard library's parser, the process would crash here, because the recursion limit is high.
    Parties have such a high limit: draws need py_ecc, which sets it.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(RpcUnavailable):
            Connection(url).request("eth_chainId", attempts=1)
    finally:
        sys.setrecursionlimit(before)
