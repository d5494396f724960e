"""Beacon signatures: vectors of RFC 9380 and gnark-crypto, a round of evmnet, and refused input."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.beacon import bn254
from protocol.beacon.bn254 import ORDER, MapHints, P
from protocol.beacon.errors import BeaconError
from tests.bls import verify
from tests.vectors import generate_beacon
from tests.vectors.generate_beacon import EVMNET_KEY, EVMNET_ROUND, EVMNET_SIGNATURE, HALF, SECRET

MESSAGES = (b"", b"abc", b"abcdef0123456789", b"q128_" + b"q" * 128, b"a512_" + b"a" * 512)
"""The messages of RFC 9380's test vectors."""
EXPANDED = (
    "68a985b87eb6b46952128911f2a4412bbc302a9d759667f87f7a21d803f07235",
    "d8ccab23b5985ccea865c6c97b6e5b8350e794e603b4b97902f53a8a0d605615",
    "eff31487c770a893cfb36f912fbfcbff40d5661771ca4b2cb4eafe524333f5c1",
    "b23a1d2b4d97b2ef7785562a7e8bac7eed54ed6e97e29aa51bfe3f12ddad1ff9",
    "4623227bcc01293b8c130bf771da8c298dede7383243dc0993d2d94823958c4c",
)
"""The messages expanded to 32 bytes each, from RFC 9380, appendix K.1."""
EXPANDED_EMPTY = (
    "af84c27ccfd45d41914fdff5df25293e221afc53d8ad2ac06d5e3e29485dadbe"
    "e0d121587713a3e0dd4d5e69e93eb7cd4f5df4cd103e188cf60cb02edc3edf18"
    "eda8576c412b18ffb658e3dd6ec849469b979d444cf7b26911a08e63cf31f9dc"
    "c541708d3491184472c2c29bb749d4286b004ceb5ee6b9a7fa5b646c993f0ced"
)
"""The empty message expanded to 128 bytes, also from RFC 9380, appendix K.1."""
POINTS = (
    (
        0x0A976AB906170DB1F9638D376514DBF8C42AEF256A54BBD48521F20749E59E86,
        0x02925EAD66B9E68BFC309B014398640AB55F6619AB59BC1FAB2210AD4C4D53D5,
    ),
    (
        0x23F717BEE89B1003957139F193E6BE7DA1DF5F1374B26A4643B0378B5BAF53D1,
        0x04142F826B71EE574452DBC47E05BC3E1A647478403A7BA38B7B93948F4E151D,
    ),
    (
        0x187DBF1C3C89ACECEEF254D6548D7163FDFA43084145F92C4C91C85C21442D4A,
        0x0ABD99D5B0000910B56058F9CC3B0AB0A22D47CF27615F588924FAC1E5C63B4D,
    ),
    (
        0x00FE2B0743575324FC452D590D217390AD48E5A16CF051BEE5C40A2EBA233F5C,
        0x0794211E0CC72D3CBBDF8E4E5CD6E7D7E78D101FF94862CAAE8ACBE63E9FDC78,
    ),
    (
        0x01B05DC540BD79FD0FEA4FBB07DE08E94FC2E7BD171FE025C479DC212A2173CE,
        0x1BF028AFC00C0F843D113758968F580640541728CFC6D32CED9779AA613CD9B0,
    ),
)
"""The points to which the suite BN254G1_XMD:SHA-256_SVDW_RO_ hashes the five messages.

Source: gnark-crypto, ecc/bn254/hash_vectors_test.go.
"""


def test_vectors_are_what_the_generator_writes() -> None:
    assert json.loads(generate_beacon.FILE.read_text()) == generate_beacon.document()


@pytest.fixture
def with_sha256(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with SHA-256 and its 64-byte block instead of Keccak, as the published vectors do."""
    monkeypatch.setattr(bn254, "keccak", lambda data: sha256(data).digest())
    monkeypatch.setattr(bn254, "KECCAK_BLOCK", 64)


@pytest.mark.usefixtures("with_sha256")
def test_messages_expand_as_the_rfc_says() -> None:
    tag = b"QUUX-V01-CS02-with-expander-SHA256-128"
    assert tuple(bn254.expand_message(message, 32, tag).hex() for message in MESSAGES) == EXPANDED
    assert bn254.expand_message(b"", 128, tag).hex() == EXPANDED_EMPTY


@pytest.mark.usefixtures("with_sha256")
def test_messages_hash_to_the_points_of_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bn254, "DST", b"QUUX-V01-CS02-with-BN254G1_XMD:SHA-256_SVDW_RO_")
    assert tuple(map(bn254.hash_to_point, MESSAGES)) == POINTS


def test_the_round_of_evmnet_is_signed() -> None:
    message = bn254.round_message(EVMNET_ROUND)
    assert bn254.hash_to_point(message) == (
        0x1626082C3DD0751BDAAF8C3E709B5DD7CDEDF45D4E81A5AA3E270F1E78924B32,
        0x2BF29AB3AF54DFE3C053AD4EFA93DB05D3586368463E9D7334C7BA61F6F4E955,
    )
    assert verify(EVMNET_KEY, message, EVMNET_SIGNATURE)
    assert not verify(EVMNET_KEY, bn254.round_message(EVMNET_ROUND + 1), EVMNET_SIGNATURE)
    assert not verify(bn254.public_key(SECRET), message, EVMNET_SIGNATURE)
    assert bn254.word(EVMNET_SIGNATURE) == sha256(EVMNET_SIGNATURE).digest()


def test_keys_are_the_secret_times_the_generator() -> None:
    assert bn254.public_key(1).hex() == (
        "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2"
        "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed"
        "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b"
        "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"
    )
    message = bn254.round_message(7)
    assert verify(bn254.public_key(ORDER - 1), message, bn254.sign(ORDER - 1, message))
    point = bn254.hash_to_point(message)
    assert bn254.sign(1, message) == _bytes(*point)
    assert bn254.sign(ORDER - 1, message) == _bytes(point.x, P - point.y)


# ------------------------------------------------------------------ hints


@given(st.integers(0, P - 1))
def test_hints_are_what_they_say(u: int) -> None:
    hints = bn254.map_hints(u)
    x1, x2, x3 = bn254.candidates(u)
    product = (1 - 16 * u**4) % P
    assert max(hints) < P
    assert hints.inverse * product % P == (product != 0)
    assert hints.root % 2 == u % 2
    assert hints.root**2 % P in (_g(x1), P - _g(x1))
    if is_square(_g(x1)):
        assert hints.other == 0
    else:
        assert hints.other % 2 == u % 2
        assert is_square(_g(x2)) != is_square(_g(x3))
        assert hints.other**2 % P == _g(x2 if is_square(_g(x2)) else x3)


@given(st.integers(0, P - 1))
def test_points_are_those_of_the_rfcs_steps(u: int) -> None:
    x1, x2, x3 = bn254.candidates(u)
    x, y = bn254.map_to_point(u)
    assert x == (x1 if is_square(_g(x1)) else x2 if is_square(_g(x2)) else x3)
    assert y * y % P == _g(x)
    assert y % 2 == u % 2


def test_all_three_candidates_are_taken() -> None:
    taken = {bn254.candidates(u).index(bn254.map_to_point(u).x) for u in range(1, 20)}
    assert taken == {0, 1, 2}


def test_the_inverse_of_zero_is_zero() -> None:
    """The number to invert, 1 - 16 u^4, is zero only for u = 1/2 and u = -1/2, because -1 is not a square.
    Then x1 = x2 = -1/2.
    """
    assert not is_square(P - 1)
    for u in (HALF, P - HALF):
        assert bn254.candidates(u) == (P - HALF, P - HALF, 1)
        assert bn254.map_hints(u) == MapHints(0, bn254.map_to_point(u).y, 0)
        assert bn254.map_to_point(u).x == P - HALF


# ------------------------------------------------------------------ refused input


@pytest.mark.parametrize(
    "point",
    [(0, 0), (0, P), (P, P), (1, 3), (2, 2), (1 + P, 2), (1, 2 + P), (2**256 - 1, 2**256 - 1)],
)
def test_what_is_no_point_is_not_signed(point: tuple[int, int]) -> None:
    assert not verify(EVMNET_KEY, bn254.round_message(1), _bytes(*point))


@pytest.mark.parametrize("length", [0, 32, 48, 63, 65, 96, 128])
def test_signatures_of_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(BeaconError, match=f"expected 64 bytes, got {length}"):
        verify(EVMNET_KEY, bn254.round_message(1), bytes(length))


@pytest.mark.parametrize("length", [0, 64, 96, 127, 129])
def test_keys_of_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(BeaconError, match=f"expected 128 bytes, got {length}"):
        verify(bytes(length), bn254.round_message(1), EVMNET_SIGNATURE)


NO_KEYS = {
    "infinity": bytes(128),
    "halves swapped": EVMNET_KEY[32:64] + EVMNET_KEY[:32] + EVMNET_KEY[96:] + EVMNET_KEY[64:96],
    "not reduced": (int.from_bytes(EVMNET_KEY[:32], "big") + P).to_bytes(32, "big") + EVMNET_KEY[32:],
    "off the curve": EVMNET_KEY[:-1] + b"\x0c",
    "outside the group": bytes.fromhex(
        f"{0:064x}{1:064x}"
        "0d1271953ed9ea0836846e70a1934187998c7f790cb4d7511b7f8da82de048a4"
        "2869111d5381f072f8e2728fdb825a51aadd70e52c9830e9ab4b871c0531f1bb"
    ),
}


@pytest.mark.parametrize("key", NO_KEYS.values(), ids=NO_KEYS.keys())
def test_what_is_no_key_is_refused(key: bytes) -> None:
    with pytest.raises(BeaconError, match="expected a point of BN254's G2"):
        verify(key, bn254.round_message(1), EVMNET_SIGNATURE)


@pytest.mark.parametrize("secret", [-1, 0, ORDER, ORDER + 1])
def test_secrets_outside_the_group_are_refused_and_not_repeated(secret: int) -> None:
    with pytest.raises(BeaconError, match="got another number"):
        bn254.public_key(secret)
    with pytest.raises(BeaconError, match="got another number"):
        bn254.sign(secret, bytes(32))


@pytest.mark.parametrize("number", [-1, 0, 2**64])
def test_rounds_are_positive_and_of_64_bits(number: int) -> None:
    with pytest.raises(BeaconError, match="round of the beacon"):
        bn254.round_message(number)


def is_square(number: int) -> bool:
    """Whether the number is a square modulo P, by Euler's criterion."""
    return pow(number, (P - 1) // 2, P) <= 1


def _g(x: int) -> int:
    return (x**3 + 3) % P


def _bytes(x: int, y: int) -> bytes:
    return x.to_bytes(32, "big") + y.to_bytes(32, "big")
