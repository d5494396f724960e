"""Duties of our accounts in looks: an account that looks compares digests, and an account that is looked at
reveals its digest.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.views import Seat
from protocol.dispute.keys import salt_hash
from protocol.dispute.looks import Look
from protocol.node.party.exits import Observation
from verifier.context import Context
from verifier.salts import Salted, salted_seats


def compared(context: Context, seen: Observation) -> list[Salted]:
    """Our looks, each with the salt that the looked-at seat or look has revealed."""
    own = [look for look in seen.looks if look.account in context.clients]
    found = [(look, context.looks.revealed(seen.view.task, look.number)) for look in own]
    return [Salted(look, told.salt, salt_hash(told.salt)) for look, told in found if told is not None]


def revealing_seats(context: Context, seen: Observation) -> list[Salted]:
    """Our seats and looks that are looked at and have not revealed their digests."""
    numbers = {seat.number for _, seat in unopened(context, seen)}
    seats = [seat for seat in seen.places if seat.number in numbers]
    return salted_seats(context, seen, seats)


def unopened(context: Context, seen: Observation) -> Iterator[tuple[int, Seat]]:
    """Yields pairs of a look's number and the look's target. The target is one of our seats or looks, and it
    has not revealed its digest for this look yet. Targets that were caught are left out.
    """
    own = {seat.number: seat for seat in seen.places if seat.account in context.clients and not seat.caught}
    each = context.terms(seen.view.task).segments_per_verifier if seen.looks else 0
    for look in seen.looks:
        stands = context.looks.of(seen.view.task, look.number)
        seat = own.get(Look.of(look.number).looked_at(each))
        if seat is not None and stands is not None and stands.revealed is None:
            yield look.number, seat
