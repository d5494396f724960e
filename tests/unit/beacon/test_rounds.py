"""A network's clock and chain hash agree with the values that drand has published. Networks that cannot exist
are refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.settings import AssaySettings
from protocol.beacon.bn254 import public_key
from protocol.beacon.errors import NetworkError, NoSuchRound
from protocol.beacon.keys import secret_of
from protocol.beacon.networks import DEVELOPMENT, EVMNET, default_relays, load_network
from protocol.beacon.rounds import LAST_ROUND, Network
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.node.http import url_of
from tests.bls import is_signed

REAL_ROUND = 9_337_227
REAL_SIGNATURE = (
    "01d65d6128f4b2df3d08de85543d8efe06b0281d0770246ae3672e8ddd3efda0"
    "269373123458f0b5c0073eeed1c816a06809e127421513e34ee07df6987910b3"
)


def test_the_chain_hash_of_evmnet_is_the_published_one() -> None:
    assert EVMNET.chain_hash == "04f1e9062b8a81f848fded9c12306733282b2727ecced50032187751166ec8c3"


def test_a_real_round_is_evmnet_s() -> None:
    assert is_signed(EVMNET, REAL_ROUND, bytes.fromhex(REAL_SIGNATURE))
    assert not is_signed(EVMNET, REAL_ROUND + 1, bytes.fromhex(REAL_SIGNATURE))


@pytest.mark.parametrize(
    ("time", "number"),
    [(1_727_521_075, 1), (1_727_521_077, 1), (1_727_521_078, 2), (1_727_521_075 + 3 * 9_337_226, REAL_ROUND)],
)
def test_round_at_is_the_newest_published(time: int, number: int) -> None:
    assert EVMNET.round_at(time) == number


@given(st.integers(1, LAST_ROUND), st.integers(1, 2**32 - 1), st.integers(1, 2**63 - 1))
def test_a_round_begins_at_its_time_and_no_second_earlier(number: int, period: int, genesis: int) -> None:
    network = EVMNET.model_copy(update={"period": period, "genesis_time": genesis})
    time = network.time_of(number)
    assert time == genesis + (number - 1) * period
    assert network.round_at(time) == number
    assert network.round_at(time + period - 1) == number
    if number > 1:
        assert network.round_at(time - 1) == number - 1


@pytest.mark.parametrize("time", [1_727_521_074, 0, -1])
def test_no_round_is_published_before_the_first(time: int) -> None:
    with pytest.raises(NoSuchRound, match="expected a time from 1727521075 on"):
        EVMNET.round_at(time)


@pytest.mark.parametrize("number", [0, -1, LAST_ROUND + 1])
def test_no_round_has_a_number_that_is_no_u64_from_1(number: int) -> None:
    with pytest.raises(NoSuchRound, match="expected a number from 1 to 18446744073709551615"):
        EVMNET.time_of(number)


def test_the_development_network_is_the_first_development_account_s() -> None:
    account = development_account(0, DEVELOPMENT_CHAIN)
    assert public_key(secret_of(bytes(account.key))) == DEVELOPMENT.key
    assert DEVELOPMENT.round_at(1_800_000_000) == 1_800_000_000, "a round is a second"


def test_another_account_signs_with_another_key() -> None:
    secrets = {secret_of(bytes([index]) * 32) for index in range(1, 20)}
    assert len(secrets) == 19


def test_relays_are_known_by_the_whole_network_and_not_by_its_name() -> None:
    assert "https://api.drand.sh" in default_relays(EVMNET)
    assert default_relays(DEVELOPMENT) == (url_of("127.0.0.1", AssaySettings().beacon_port),)
    assert default_relays(EVMNET.model_copy(update={"period": 4})) == ()


def written(folder: Path, network: Network, **changes: object) -> str:
    lines = [f"{name} = {value!r}" for name, value in (network.model_dump() | changes).items()]
    file = folder / "own.toml"
    file.write_text("\n".join(["[network]", *lines, ""]))
    return str(file)


def test_a_file_describes_a_network_of_one_s_own(tmp_path: Path) -> None:
    assert load_network(written(tmp_path, EVMNET)) == EVMNET
    own = load_network(written(tmp_path, EVMNET, beacon_id="ours", relays=["http://[::1]:8702"]))
    assert (own.beacon_id, own.key) == ("ours", EVMNET.key)
    assert own.chain_hash != EVMNET.chain_hash


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"public_key": EVMNET.public_key[:-2]}, "public_key"),
        ({"public_key": EVMNET.public_key.upper()}, "public_key"),
        ({"genesis_time": 0}, "genesis_time"),
        ({"genesis_time": 2**63}, "genesis_time"),
        ({"genesis_time": "1727521075"}, "genesis_time"),
        ({"period": 0}, "period"),
        ({"period": 2**32}, "period"),
        ({"genesis_seed": "00"}, "genesis_seed"),
        ({"beacon_id": ""}, "beacon_id"),
        ({"scheme": "bls-unchained-g1-rfc9380"}, "scheme"),
        ({"perod": 3}, "perod"),
        ({"relays": ["ftp://example.org"]}, "http or https"),
        ({"relays": ["http://user@example.org"]}, "no user and no password"),
    ],
)
def test_a_network_that_cannot_be_is_refused_by_field(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        load_network(written(tmp_path, EVMNET, **change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "expected evmnet, development, or a readable TOML file"),
        ("network =", "expected TOML"),
        ("[other]", r"expected a table \[network\]"),
        ("network = 3", r"expected a table \[network\]"),
        ("#" * (1 << 16) + "#", "expected at most 65536 bytes"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "own.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(NetworkError, match=message):
        load_network(str(file))
