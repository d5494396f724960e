"""What a verifier owes in its seats, decided from the state on the chain. Pure: no clock, chain or
database.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.looks import is_look
from protocol.node.party.exits import Observation


def due_segments(seat: Seat, segments: Sequence[int], size: int) -> tuple[int, ...]:
    """The segment numbers that are due. For a seat, these are its `segments`, followed by `size`, which
    stands for the result (`findings.Committed`). For a look, this is its one segment. `size` is the size of
    the task's segment tree.
    """
    return tuple(segments) if is_look(seat.number) else (*segments, size)


def own_seats(seen: Observation, accounts: Container[str], *, attested: bool = False) -> list[Seat]:
    """The seats and looks of these accounts that have not attested; with `attested`, also those that have. A
    seat whose time is over is included until it is drawn again: if its account finds a difference too late to
    attest, the difference is still challenged.
    """
    return [seat for seat in seen.places if seat.account in accounts and (attested or not seat.attested)]


def attestable(seen: Observation, accounts: Container[str]) -> list[Seat]:
    """The seats and looks of these accounts that can still attest."""
    in_time = seen.view.status is TaskStatus.SUBMITTED
    return [seat for seat in own_seats(seen, accounts) if in_time and seen.now <= seat.until]


def waits_for_jury(seen: Observation, seat: Seat) -> bool:
    """Whether the seat has claimed and awaits a jury. Until the verdict it cannot attest."""
    return seen.audit is not None and seen.audit.claimant == seat.number + 1


def releasable(seen: Observation, accounts: Container[str]) -> list[Seat]:
    """The seats and looks that still bind these accounts although the accounts owe nothing in them any more.
    A seat or look in which its account was caught is left out, because the account is suspended instead of
    released.
    """
    if seen.view.status is TaskStatus.SUBMITTED:
        return []
    places = [seat for seat in seen.places if seat.account in accounts]
    return [seat for seat in places if not seat.released and not seat.caught]


def open_segments(seen: Observation) -> range:
    """The segments of a task that may be challenged now; a whistleblower replays all of them."""
    view = seen.view
    may_be = view.status.can_be_challenged and seen.now <= seen.challenged_until
    return range(1, view.size) if may_be else range(0)


def due_by(seen: Observation, accounts: Container[str]) -> int:
    """When the next of our seats must attest; if there is none, when challenges end. Seconds since 1970."""
    own = [seat.until for seat in attestable(seen, accounts)]
    return min(own, default=seen.challenged_until)
