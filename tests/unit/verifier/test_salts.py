"""Salts of own seats and challenges: derived from key and chain, the same after a restart, never shown."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import cast

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.client import Client
from protocol.dispute.keys import NO_SEAT, salt_hash, seat_salt, seat_secret
from tests.unit.verifier.test_seats import seat
from verifier.salts import Salted, salt_of_challenge, salted

TASK, SEED = 7, bytes([5]) * 32
BOARD = "0x" + "66" * 20


def own(index: int = 2, task: int = TASK, number: int = 1, seed: bytes = SEED, board: str = BOARD) -> Salted:
    """The salt of a development account's seat."""
    account = development_account(index, DEVELOPMENT_CHAIN)
    client = SimpleNamespace(
        sender=SimpleNamespace(account=account),
        deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
        audit=SimpleNamespace(address=board),
    )
    return salted(cast(Client, client), task, seat(number, str(account.address)), seed)


def test_a_salt_follows_from_key_and_chain_alone() -> None:
    account = development_account(2, DEVELOPMENT_CHAIN)
    secret = seat_secret(bytes(account.key), DEVELOPMENT_CHAIN, BOARD, TASK, 1)
    due = seat_salt(DEVELOPMENT_CHAIN, BOARD, TASK, 1, str(account.address), SEED, secret)
    assert own() == own()
    assert (own().salt, own().hash) == (due, salt_hash(due))


def test_every_seat_draw_and_account_has_a_salt_of_its_own() -> None:
    others = (own(3), own(task=8), own(number=2), own(seed=bytes(32)), own(board="0x" + "67" * 20))
    assert len({one.salt for one in (own(), *others)}) == 1 + len(others)


def test_a_salt_and_its_digester_are_shown_by_no_repr() -> None:
    found = own()
    for text in (repr(found), str(found), repr(found.digester(1)), f"{found!r}"):
        assert found.salt.hex() not in text
        assert repr(found.salt) not in text
    assert asdict(found)["salt"] == found.digester(2).salt == found.salt
    assert found.digester(2).thinning == 2


def of_challenge(
    index: int = 2,
    task: int = TASK,
    seat: int = NO_SEAT,
    segment: int | None = 1,
    before: bytes = b"",
    commitments: str = BOARD,
) -> bytes:
    """The salt of a development account's challenge."""
    client = SimpleNamespace(
        sender=SimpleNamespace(account=development_account(index, DEVELOPMENT_CHAIN)),
        deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
        commitments=SimpleNamespace(address=commitments),
    )
    return salt_of_challenge(cast(Client, client), task, seat, segment, before)


def test_a_challenge_has_the_same_salt_again_and_no_other_has_it() -> None:
    first = of_challenge()
    assert first == of_challenge()
    others = [of_challenge(3), of_challenge(task=8), of_challenge(seat=1), of_challenge(segment=2)]
    others += [
        of_challenge(segment=None),
        of_challenge(before=first),
        of_challenge(commitments="0x" + "67" * 20),
    ]
    assert len({len(salt) for salt in (first, *others)}) == 1
    assert len({first, *others}) == 1 + len(others)
