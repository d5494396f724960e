"""The salts of own seats (encoding.md section 8). Nothing is kept: they follow from the account's key and the chain.

A salt is worth half of its seat's lock to whoever learns it before looks are drawn: it is never logged, and has no
place in an error's text or a repr.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from protocol.chain.client import Client
from protocol.chain.views import Seat
from protocol.commitments.digests import Digester
from protocol.dispute.keys import salt_hash, seat_salt, seat_secret
from protocol.node.party.exits import Observation
from verifier.context import Context


@dataclass(frozen=True, slots=True)
class Salted:
    """An own seat with its salt. `hash`, which is public, stands for task, seat, account and the draw's seed."""

    seat: Seat
    salt: bytes = field(repr=False)
    hash: bytes

    def digester(self, thinning: int) -> Digester:
        """What hashes states for this seat."""
        return Digester(self.salt, thinning)


def salted(client: Client, task: int, seat: Seat, seed: bytes) -> Salted:
    """The salt of a seat of the client's account, under the seed of the task's first draw."""
    chain, board = client.deployment.chain_id, client.audit.address
    salt = seat_salt(
        chain, board, task, seat.number, seat.account, seed, secret_of(client, task, seat.number)
    )
    return Salted(seat, salt, salt_hash(salt))


def salted_seats(context: Context, seen: Observation, seats: Sequence[Seat]) -> list[Salted]:
    """Own seats and looks with their salts."""
    if seen.audit is None:
        return []
    task, seed = seen.view.task, seen.audit.seed
    return [salted(context.clients[seat.account], task, seat, seed) for seat in seats]


def secret_of(client: Client, task: int, seat: int) -> bytes:
    """The secret of an own seat, or look: the only use of a private key beside signing. It is shown to the chain alone,
    where the seat is looked at."""
    assert client.sender is not None, "who has a seat sends"
    key = bytes(client.sender.account.key)
    return seat_secret(key, client.deployment.chain_id, client.audit.address, task, seat)
