"""The salts of our seats (audit.md section 4) and of our challenges. They are derived from the account's key
and the chain, so none is lost with a database.

Until looks are drawn, a party that learns a seat's salt can take half of the seat's lock. So a salt never
appears in a log, an error's text or a repr.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from protocol.chain.client import Client
from protocol.chain.views import Seat
from protocol.commitments.digests import Digester
from protocol.dispute.keys import SEGMENT_UNKNOWN, challenge_salt, salt_hash, seat_salt, seat_secret
from protocol.node.party.exits import Observation
from verifier.context import Context


@dataclass(frozen=True, slots=True)
class Salted:
    """A seat with the salt of its digest. `hash` is public and identifies task, seat, account and the
    draw's seed.
    """

    seat: Seat
    salt: bytes = field(repr=False)
    hash: bytes

    def digester(self, thinning: int) -> Digester:
        """The digester that hashes states for this seat."""
        return Digester(self.salt, thinning)


def salted(client: Client, task: int, seat: Seat, seed: bytes) -> Salted:
    """One of our seats with its salt, which is derived under the seed of the task's first draw."""
    chain, board = client.deployment.chain_id, client.audit.address
    salt = seat_salt(
        chain, board, task, seat.number, seat.account, seed, secret_of(client, task, seat.number)
    )
    return Salted(seat, salt, salt_hash(salt))


def salted_seats(context: Context, seen: Observation, seats: Sequence[Seat]) -> list[Salted]:
    """Our seats and looks with their salts."""
    if seen.audit is None:
        return []
    task, seed = seen.view.task, seen.audit.seed
    return [salted(context.clients[seat.account], task, seat, seed) for seat in seats]


def secret_of(client: Client, task: int, seat: int) -> bytes:
    """The secret of one of our seats or looks. It is shown only to the chain, when the seat is looked at or a
    juror opens a chunk.
    """
    return seat_secret(_key(client), client.deployment.chain_id, client.audit.address, task, seat)


def salt_of_challenge(
    client: Client, task: int, seat: int, segment: int | None, before: bytes = b""
) -> bytes:
    """The salt of our challenge of a segment (None if the false segment is unknown). `before` is the salt of
    an earlier commitment that was not opened in time.
    """
    chain, commitments = client.deployment.chain_id, client.commitments.address
    named = SEGMENT_UNKNOWN if segment is None else segment
    return challenge_salt(_key(client), chain, commitments, task, seat, named, before)


def _key(client: Client) -> bytes:
    """The account's private key. Besides signing, it is used only to derive the secrets of this module."""
    assert client.sender is not None, "who has a seat, or challenges, sends"
    return bytes(client.sender.account.key)
