"""A seat's secret and salt: what they depend on, and which input is refused. Also checks that keys.json is
current.

tests/vectors/digests.json has values of secrets and salts.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments.opened_chunks import Place
from protocol.dispute.errors import DisputeError
from protocol.dispute.keys import (
    accusation_word,
    attestation_word,
    challenge_salt,
    informing_commitment,
    revealed_word,
    salt_hash,
    seat_salt,
    seat_secret,
)
from tests.vectors.generate_keys import FILE, document

KEY, SEED, SECRET = (bytes([i]) * 32 for i in range(3))
BOARD, ACCOUNT = "0x" + "ab" * 20, "0x" + "cd" * 20
WORDS = st.integers(0, 2**256 - 1)


def test_the_file_of_keys_is_what_its_generator_writes() -> None:
    due = json.loads(FILE.read_text())
    assert document() == due, "run `python -m tests.vectors.generate_keys` and review the difference"


@given(
    st.tuples(WORDS, WORDS, WORDS, st.integers(0, 255)), st.tuples(WORDS, WORDS, WORDS, st.integers(0, 255))
)
def test_a_secret_is_one_seats(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    secrets = [seat_secret(KEY, chain, BOARD, task, seat, stage) for chain, task, seat, stage in (one, other)]
    assert (secrets[0] == secrets[1]) == (one == other)


def test_every_part_changes_secret_and_salt() -> None:
    parts: list[tuple[Callable[..., bytes], list[Any], list[Any]]] = [
        (seat_secret, [KEY, 1, BOARD, 2, 3, 0], [SEED, 2, ACCOUNT, 3, 4, 1]),
        (challenge_salt, [KEY, 1, BOARD, 2, 3, 4, b""], [SEED, 2, ACCOUNT, 3, 4, 5, SECRET]),
        (seat_salt, [1, BOARD, 2, 3, ACCOUNT, SEED, SECRET], [2, ACCOUNT, 3, 4, BOARD, KEY, KEY]),
        (informing_commitment, [1, BOARD, 2, 3, ACCOUNT, SEED], [2, ACCOUNT, 3, 4, BOARD, KEY]),
        (attestation_word, [KEY, SEED], [SEED, KEY]),
        (revealed_word, [KEY, SEED], [SEED, KEY]),
        (accusation_word, [Place(1, 2, 3, 4), KEY, SEED], [Place(2, 1, 3, 4), SEED, KEY]),
    ]
    for function, arguments, others in parts:
        changed = [[*arguments[:i], other, *arguments[i + 1 :]] for i, other in enumerate(others)]
        assert len({function(*each) for each in (arguments, *changed)}) == len(arguments) + 1


def test_the_salt_of_a_challenge_can_be_computed_again_from_the_key() -> None:
    """Every release must compute the same salt, because bonds depend on it."""
    words = (
        (1).to_bytes(32, "big"),
        bytes.fromhex(BOARD[2:]),
        (2).to_bytes(32, "big"),
        (3).to_bytes(32, "big"),
    )
    message = b"assay challenge" + b"".join(words) + bytes([0, 0, 0, 4])
    for before in (b"", SECRET):
        found = challenge_salt(KEY, 1, BOARD, 2, 3, 4, before)
        assert found == hmac.digest(KEY, message + before, "sha256")


@pytest.mark.parametrize("length", [0, 20, 31, 33, 64])
def test_what_has_not_32_bytes_is_refused_and_not_shown(length: int) -> None:
    value = b"\xe7" * length
    uses: tuple[Callable[[], bytes], ...] = (
        lambda: seat_secret(value, 1, BOARD, 1, 1),
        lambda: seat_salt(1, BOARD, 1, 1, ACCOUNT, value, SECRET),
        lambda: seat_salt(1, BOARD, 1, 1, ACCOUNT, SEED, value),
        lambda: salt_hash(value),
        lambda: attestation_word(value, SEED),
        lambda: attestation_word(SEED, value),
        lambda: revealed_word(value, SEED),
        lambda: accusation_word(Place(1, 0, 0, 0), value, SEED),
        lambda: informing_commitment(1, BOARD, 1, 1, ACCOUNT, value),
    )
    for use in uses:
        with pytest.raises(DisputeError, match=f"expected 32 bytes, got {length} bytes") as caught:
            use()
        assert "e7" not in str(caught.value)


@pytest.mark.parametrize(
    ("chain", "task", "seat", "stage", "bits"),
    [(-1, 0, 0, 0, 256), (0, 2**256, 0, 0, 256), (0, 0, 0, 256, 8)],
)
def test_a_number_that_no_chain_has_is_refused(
    chain: int, task: int, seat: int, stage: int, bits: int
) -> None:
    with pytest.raises(DisputeError, match=rf"number: expected 0 to 2\^{bits} - 1"):
        seat_secret(KEY, chain, BOARD, task, seat, stage)
