"""Relays of every kind on loopback: one honest relay is enough; without one, each relay's fault is named."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from protocol.beacon.bn254 import P, round_message, sign
from protocol.beacon.errors import NoRelay, NoSuchRound
from protocol.beacon.networks import EVMNET, default_relays
from protocol.beacon.relays import Relays
from protocol.node.addresses import BadAddress
from protocol.node.party.relays import relays_by
from protocol.node.party.settings import NodeSettings
from protocol.node.settings import SettingsError, load
from tests.bls import is_signed
from tests.unit.beacon.networks import GENESIS, NETWORK, OTHER_SECRET, PERIOD, SECRET, beacon, relays
from tests.unit.node.servers import Handler, answers, serving

ROUND = 7
RIGHT = sign(SECRET, round_message(ROUND))
SHORT, PLENTY = 0.5, 60.0
"""Patience in seconds for a relay that never ends its answer, and for one that answers at once."""
SIGNED = partial(is_signed, NETWORK)
gone = threading.Event()


@pytest.fixture(autouse=True)
def ending() -> Iterator[None]:
    """Stop endless relays at the end of the test."""
    gone.clear()
    yield
    gone.set()


def later_round() -> int:
    return GENESIS + 100 * PERIOD


def told(number: object = ROUND, signature: object = RIGHT.hex()) -> Handler:
    return answers(json.dumps({"round": number, "signature": signature}).encode())


def mirrored(signature: bytes) -> str:
    """The signature's point, negated, in hexadecimal digits. The negated point is on the curve too."""
    return signature[:32].hex() + f"{P - int.from_bytes(signature[32:], 'big'):064x}"


def stalls(_connection: socket.socket, _target: str) -> None:
    gone.wait(60)


def trickles(connection: socket.socket, _target: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")
    while not gone.wait(0.05):
        connection.sendall(b" ")


def trickles_headers(connection: socket.socket, _target: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not gone.wait(0.05):
        connection.sendall(b"a: b\r\n")


def endless(connection: socket.socket, _target: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while not gone.is_set():
        connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")


BAD: dict[str, tuple[Handler, str]] = {
    "lies": (told(signature=sign(SECRET, round_message(ROUND + 1)).hex()), "not the network's"),
    "has another key": (told(signature=sign(OTHER_SECRET, round_message(ROUND)).hex()), "not the network's"),
    "negates": (told(signature=mirrored(RIGHT)), "not the network's"),
    "infinity": (told(signature="00" * 64), "not the network's"),
    "off the curve": (told(signature="01" * 64), "not the network's"),
    "coordinate of P": (told(signature=f"{P:064x}" + RIGHT.hex()[64:]), "not the network's"),
    "another round": (told(ROUND + 1, sign(SECRET, round_message(ROUND + 1)).hex()), "round 8"),
    "no signature": (answers(b'{"round": 7}'), "signature: Field required"),
    "short": (told(signature=RIGHT.hex()[:-2]), "signature: String should match"),
    "long": (told(signature=RIGHT.hex() + "00"), "signature: String should match"),
    "no hex": (told(signature="0x" + RIGHT.hex()[2:]), "signature: String should match"),
    "a number as text": (told(number="7"), "round: Input should be a valid integer"),
    "a number with a point": (
        answers(b'{"round": 7.0, "signature": ""}'),
        "round: Input should be a valid int",
    ),
    "a long number": (answers(b'{"round": ' + b"7" * 4000 + b"}"), "round: "),
    "no JSON": (answers(b"<html>"), "Invalid JSON"),
    "nested": (answers(b"[" * 4000), "Invalid JSON"),
    "no object": (answers(b"[]"), "Input should be an object"),
    "nothing": (answers(b""), "Invalid JSON"),
    "no text": (answers(b'{"round": 7, "signature": "\xff"}'), "Invalid JSON"),
    "oversized": (answers(b" " * 5000), "at most 4096 bytes"),
    "endless": (endless, "at most 4096 bytes"),
    "not yet": (answers(b"Requested future beacon", "425 Too Early"), "status 425"),
    "moved": (answers(b"", "302 Found", "location: http://127.0.0.1:1/"), "status 302"),
    "packed": (answers(b"x", "200 OK", "content-encoding: gzip"), "an encoding"),
    "closes": (lambda connection, _target: connection.close(), "RemoteProtocolError"),
    "stalls": (stalls, r"0 bytes in 0\.5 s"),
    "trickles": (trickles, r"bytes in 0\.5 s"),
    "trickles headers": (trickles_headers, r"0 bytes in 0\.5 s"),
}


@contextmanager
def asking(*handlers: Handler, patience: float = PLENTY) -> Iterator[Callable[..., Relays]]:
    """Serve the handlers. Yield a function that returns the relays at the handlers' addresses and at any
    further addresses passed to it.
    """
    with ExitStack() as stack:
        urls = [stack.enter_context(serving(handler)).url for handler in handlers]
        yield lambda *others: relays([*urls, *others], patience)
        gone.set()


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_relay_alone_gives_nothing_and_is_named_with_its_fault(fault: str) -> None:
    handler, message = BAD[fault]
    patience = SHORT if message.endswith(r"0\.5 s") else PLENTY
    with asking(handler, patience=patience) as made, pytest.raises(NoRelay, match=message) as raised:
        made().signature(ROUND)
    ((relay, _),) = raised.value.failures
    assert relay.startswith("http://127.0.0.1:")
    assert raised.value.number == ROUND


def test_one_honest_relay_among_all_bad_ones_is_enough() -> None:
    handlers = [handler for handler, _ in BAD.values()]
    with asking(*handlers) as made, beacon(later_round) as honest:
        assert made(honest).signature(ROUND) == RIGHT


def test_every_relay_is_named_where_none_is_honest() -> None:
    names = ("lies", "another round", "not yet", "closes")
    with asking(*(BAD[name][0] for name in names)) as made, pytest.raises(NoRelay) as raised:
        made("http://127.0.0.1:1").signature(ROUND)
    faults = [fault for _, fault in raised.value.failures]
    assert len(faults) == 5
    assert sum("not the network's" in fault for fault in faults) == 1
    assert sum("ConnectError" in fault for fault in faults) == 1
    assert str(raised.value).startswith("beacon's round 7: expected a valid signature from one of the relays")


def test_a_relay_of_another_network_is_passed_over() -> None:
    other = NETWORK.model_copy(update={"period": PERIOD + 1})
    with beacon(later_round, other) as wrong, beacon(later_round) as right:
        with pytest.raises(NoRelay, match="status 400"):
            relays([wrong]).signature(ROUND)
        assert relays([wrong, right]).signature(ROUND) == RIGHT


def test_a_path_of_the_operator_s_own_comes_first() -> None:
    with serving(told()) as server:
        assert relays([f"{server.url}/drand/"]).signature(ROUND) == RIGHT
        assert server.targets == [f"/drand/{NETWORK.chain_hash}/public/7"]


def test_a_later_round_is_there_when_its_time_has_come() -> None:
    time = [NETWORK.time_of(ROUND) - 1]
    with beacon(lambda: time[0]) as url:
        asked = relays([url])
        with pytest.raises(NoRelay, match="status 425"):
            asked.signature(ROUND)
        time[0] += 1
        assert asked.signature(ROUND) == RIGHT


def test_no_relay_is_asked_for_a_round_that_cannot_be() -> None:
    with serving(told()) as server:
        for number in (0, -1, 2**64):
            with pytest.raises(NoSuchRound):
                relays([server.url]).signature(number)
        assert server.targets == []


def test_an_address_that_is_none_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(BadAddress):
        relays(["http://127.0.0.1:8702", "relay"])


def settings(**given: object) -> NodeSettings:
    return NodeSettings.model_validate({"account": "dev:0", **given})


def test_the_setting_names_relays_else_they_are_the_network_s_own() -> None:
    with beacon(later_round) as url:
        assert relays_by(settings(relays=(url,)), NETWORK, SIGNED).signature(ROUND) == RIGHT
    assert relays_by(settings(), EVMNET, SIGNED).addresses == default_relays(EVMNET)
    with pytest.raises(SettingsError, match="expected addresses of HTTP relays of the beacon network tests"):
        relays_by(settings(), NETWORK, SIGNED)


def test_a_setting_that_is_no_address_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"setting relays from environment ASSAY_RELAYS: .*http or https"):
        load(
            NodeSettings,
            "verifier",
            tmp_path / "none.toml",
            {"account": "dev:0"},
            {"ASSAY_RELAYS": "http://127.0.0.1:8702, relay.example.org"},
        )
