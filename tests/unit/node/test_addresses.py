"""What of a node's address is printed: never a path, a query or a user, where providers put keys."""

from __future__ import annotations

import pytest

from protocol.chain.errors import RpcUnavailable, WrongChain
from protocol.node.addresses import public_part

KEY = "0123456789abcdef"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("http://[::1]:8545", "http://[::1]:8545"),
        (f"https://mainnet.example.org/v3/{KEY}", "https://mainnet.example.org/…"),
        (f"https://example.org:443?key={KEY}", "https://example.org:443/…"),
        (f"https://example.org/#{KEY}", "https://example.org/…"),
        (f"https://user:{KEY}@example.org", "https://example.org/…"),
        (f"https://user:{KEY}@example.org/rpc", "https://example.org/…"),
        (f"example.org/v3/{KEY}", "…"),
        (f"localhost:8545/{KEY}", "…"),
        (f"http://[::1/{KEY}", "…"),
        ("", "…"),
    ],
)
def test_only_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    assert public_part(url) == shown


def test_errors_about_a_node_do_not_tell_its_key() -> None:
    url = f"https://mainnet.example.org/v3/{KEY}"
    for error in (RpcUnavailable(url, OSError()), WrongChain(url, 1, 2)):
        assert "https://mainnet.example.org/…" in str(error)
        assert KEY not in str(error)
