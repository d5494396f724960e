"""Which addresses are valid. A node's address is shown without path, query and user, which may hold keys."""

from __future__ import annotations

import pytest

from protocol.chain.errors import RpcUnavailable, WrongChain
from protocol.node.addresses import Address, BadAddress, parsed, public_part

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


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:8701", Address("http", "127.0.0.1", 8701)),
        ("http://127.0.0.1/", Address("http", "127.0.0.1", 80)),
        ("HTTPS://Solver.Example.org/assay/", Address("https", "solver.example.org", 443, "/assay")),
        ("https://example.org:443", Address("https", "example.org", 443)),
        ("http://[2001:db8::1]:8701/a%20b", Address("http", "2001:db8::1", 8701, "/a%20b")),
        ("http://a_b:1/~x/;y=1,2", Address("http", "a_b", 1, "/~x/;y=1,2")),
        ("https://xn--mnchen-3ya.example", Address("https", "xn--mnchen-3ya.example", 443)),
    ],
)
def test_an_address_is_its_parts(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address
    assert str(address / "tasks/1") == f"{address}/tasks/1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "127.0.0.1:8701",
        "http:",
        "http://",
        "http:///x",
        "http://user:secret@127.0.0.1",
        "http://@127.0.0.1",
        "http://127.0.0.1/?x=",
        "http://127.0.0.1/?",
        "http://127.0.0.1/#",
        "http://127.0.0.1:0",
        "http://127.0.0.1:70000",
        "http://127.0.0.1:-1",
        "http://127.0.0.1:x",
        "http://127.0.0.1/\nx",
        "http://127.0.0.1/ x",
        "http://127.0.0.1/\x1b[2J",
        "http://127.0.0.1/%zz",
        "http://127.0.0.1/a/../b",
        "http://127.0.0.1/%2e%2E/b",
        "http://127.0.0.1\\@example.org",
        "http://[::1",
        "http://::1",
        "http://[v1.a]",
        "http://[127.0.0.1]",
        "http://[fe80::1%25eth0]",
        "http://127.1",
        "http://1.2.3.4.5",
        "http://0x7f000001",
        "http://2130706433",
        "http://0177.0.0.1",
        "http://a..b",
        "http://.a",
        "http://a.",
        "http://-a",
        "http://a-.b",
        "http://%61",
        "http://" + "a" * 64,
        "http://" + "a." * 127 + "b",
        "http://a/" + "b" * 1024,
        "http://exämple.org",
        "http://\u2460.com",
        "http://\ud800",
    ],
)
def test_anything_else_is_one_error(text: str) -> None:
    with pytest.raises(BadAddress, match=r"expected .+, got .+; give an address such as") as raised:
        Address.parse(text)
    assert str(raised.value).isprintable()
    assert parsed(text) is None
