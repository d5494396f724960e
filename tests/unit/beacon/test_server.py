"""The beacon's server as a drand client sees it: paths, fields and statuses. No round is served before its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol.beacon.bn254 import round_message, sign, word
from protocol.errors import Retryable
from tests.bls import is_signed
from tests.unit.beacon.networks import GENESIS, NETWORK, PERIOD, SECRET, beacon, get

CHAIN = NETWORK.chain_hash
THIRD = GENESIS + 2 * PERIOD


class Clock:
    """The network's time, set by the test. A negative time stands for a chain that does not answer."""

    def __init__(self) -> None:
        self.time = THIRD

    def __call__(self) -> int:
        if self.time < 0:
            raise Retryable("chain")
        return self.time


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Clock, str]]:
    clock = Clock()
    with beacon(clock) as url:
        yield clock, url


@pytest.fixture
def clock(running: tuple[Clock, str]) -> Clock:
    running[0].time = THIRD
    return running[0]


@pytest.fixture
def url(running: tuple[Clock, str], clock: Clock) -> str:
    assert clock.time == THIRD
    return running[1]


def signed(number: int) -> dict[str, object]:
    signature = sign(SECRET, round_message(number))
    assert is_signed(NETWORK, number, signature)
    return {"round": number, "signature": signature.hex()}


def with_word(number: int) -> dict[str, object]:
    answer = signed(number)
    return answer | {"randomness": word(bytes.fromhex(str(answer["signature"]))).hex()}


@pytest.mark.parametrize("base", ["", f"/{CHAIN}", f"/{CHAIN.upper()}"])
def test_version_1_gives_round_word_and_signature(url: str, base: str) -> None:
    assert get(url, f"{base}/public/2") == (200, with_word(2))
    assert get(url, f"{base}/public/3") == (200, with_word(3))
    assert get(url, f"{base}/public/latest") == (200, with_word(3))
    assert get(url, f"{base}/public/0") == (200, with_word(3)), "drand's number for the newest"


def test_version_2_gives_round_and_signature(url: str) -> None:
    assert get(url, f"/v2/chains/{CHAIN}/rounds/1") == (200, signed(1))
    assert get(url, f"/v2/chains/{CHAIN}/rounds/latest") == (200, signed(3))


def test_the_network_is_described_in_both_forms(url: str) -> None:
    common = {"public_key": NETWORK.public_key, "period": PERIOD, "genesis_time": GENESIS}
    first = common | {
        "hash": CHAIN,
        "groupHash": "00" * 32,
        "schemeID": "bls-bn254-unchained-on-g1",
        "metadata": {"beaconID": "tests"},
    }
    second = common | {
        "chain_hash": CHAIN,
        "genesis_seed": "00" * 32,
        "scheme": "bls-bn254-unchained-on-g1",
        "beacon_id": "tests",
    }
    assert get(url, "/info") == get(url, f"/{CHAIN}/info") == (200, first)
    assert get(url, f"/v2/chains/{CHAIN}/info") == (200, second)
    assert get(url, "/chains") == get(url, "/v2/chains") == (200, [CHAIN])
    assert get(url, "/healthz") == (200, {"status": "alive"})


@pytest.mark.parametrize("path", ["/public/4", f"/{CHAIN}/public/4", f"/v2/chains/{CHAIN}/rounds/4"])
def test_a_round_is_signed_when_its_time_has_come_and_not_a_second_before(
    url: str, clock: Clock, path: str
) -> None:
    clock.time = THIRD + PERIOD - 1
    status, answer = get(url, path)
    assert (status, answer) == (425, {"detail": "Requested future beacon"})
    clock.time += 1
    status, answer = get(url, path)
    assert (status, answer["round"]) == (200, 4)
    clock.time -= 1
    assert get(url, path)[0] == 425, "a chain that went back"


@pytest.mark.parametrize("path", ["/public/latest", "/public/1", f"/v2/chains/{CHAIN}/rounds/latest"])
def test_before_the_first_round_there_is_none(url: str, clock: Clock, path: str) -> None:
    clock.time = GENESIS - 1
    assert get(url, path)[0] == 425


def test_a_chain_that_does_not_answer_is_a_service_that_is_away(url: str, clock: Clock) -> None:
    clock.time = -1
    assert get(url, "/public/1")[0] == 503


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/{'00' * 32}/public/1", 400),
        (f"/{'00' * 32}/info", 400),
        (f"/v2/chains/{'00' * 32}/info", 400),
        (f"/v2/chains/{'00' * 32}/rounds/latest", 400),
        (f"/public/{2**64}", 400),
        (f"/public/{2**64 - 1}", 425),
        ("/public/-1", 422),
        ("/public/1.0", 422),
        ("/public/" + "9" * 21, 422),
        ("/public/%D9%A3", 422),  # a digit outside ASCII
        ("/public/latest2", 422),
        ("/public/", 404),
        ("/public", 404),
        (f"/{CHAIN[:-1]}/public/1", 422),
        ("/v2/public/1", 422),
        ("/docs", 404),
        ("/openapi.json", 404),
    ],
)
def test_nothing_else_is_served(url: str, path: str, status: int) -> None:
    assert get(url, path)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_is_read_only(url: str, method: str) -> None:
    assert get(url, "/public/1", method)[0] == 405
