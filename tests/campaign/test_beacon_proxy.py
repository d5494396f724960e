"""The relay proxy itself: in the honest mode it changes nothing, and its lies have drand's form."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from time import monotonic, sleep

import pytest

from protocol.beacon.bn254 import round_message, sign, word
from tests.campaign.beacon_proxy import LIES, BeaconProxy
from tests.unit.beacon.networks import GENESIS, NETWORK, PERIOD, SECRET, beacon, get

NEWEST = 5
V1, V2 = f"/{NETWORK.chain_hash}/public", f"/v2/chains/{NETWORK.chain_hash}/rounds"


@pytest.fixture(scope="module")
def relay() -> Iterator[str]:
    with beacon(lambda: GENESIS + (NEWEST - 1) * PERIOD) as url:
        yield url


@pytest.fixture
def proxy(relay: str) -> Iterator[BeaconProxy]:
    with BeaconProxy(relay) as made:
        yield made


def signed(number: int) -> str:
    """The only valid signature of a round: in BLS, each message has exactly one signature under a key."""
    return sign(SECRET, round_message(number)).hex()


@pytest.mark.parametrize("path", [f"{V1}/3", f"{V1}/latest", f"{V2}/3", "/info", f"{V1}/6", "/nothing"])
def test_an_honest_relay_passes_all_on_unchanged(relay: str, proxy: BeaconProxy, path: str) -> None:
    assert get(proxy.url, path) == get(relay, path)
    assert proxy.asked == [path]


@pytest.mark.parametrize("base", [V1, V2, "/public"])
@pytest.mark.parametrize("number", ["1", "3", "5", "latest", "9"])
def test_a_lie_has_the_form_of_a_round_and_no_signature_of_it(
    relay: str, proxy: BeaconProxy, base: str, number: str
) -> None:
    _, true = get(relay, f"{base}/{min(int(number), NEWEST) if number.isdigit() else number}")
    asked = NEWEST if number == "latest" else int(number)
    proxy.mode = "lying"
    for lie in LIES:
        status, told = get(proxy.url, f"{base}/{number}")
        assert (status, told.keys()) == (200, true.keys())
        assert len(told["signature"]) == 128
        assert told["signature"] != signed(told["round"]), lie
        assert (told["round"] == asked) == (lie != "a future round")
        if "randomness" in told:
            assert told["randomness"] == word(bytes.fromhex(told["signature"])).hex()


def test_a_lie_that_is_named_is_told_each_time(proxy: BeaconProxy) -> None:
    proxy.mode, proxy.lie = "lying", "another round's signature"
    for _ in range(2):
        assert get(proxy.url, f"{V2}/3")[1] == {"round": 3, "signature": signed(2)}


def test_what_is_no_round_is_not_lied_about(relay: str, proxy: BeaconProxy) -> None:
    proxy.mode = "lying"
    assert get(proxy.url, "/info") == get(relay, "/info")


def test_a_silent_relay_ends_what_it_has_kept_waiting_when_it_is_closed(relay: str) -> None:
    before = set(threading.enumerate())
    proxy = BeaconProxy(relay)
    proxy.mode = "silent"
    asking = HTTPConnection(proxy.url.removeprefix("http://"), timeout=20)
    asking.request("GET", f"{V1}/3")
    deadline = monotonic() + 20
    while not proxy.asked:
        assert monotonic() < deadline
        sleep(0.01)
    proxy.close()
    with pytest.raises(ConnectionError):
        asking.getresponse()
    asking.close()
    assert set(threading.enumerate()) <= before


def test_a_relay_that_is_gone_gives_no_answer() -> None:
    with BeaconProxy("http://127.0.0.1:1") as proxy, pytest.raises(ConnectionError):
        get(proxy.url, f"{V1}/3")
