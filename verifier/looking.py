"""Looks (audit.md section 6): reveals our digests to looks, compares what others reveal, and takes locks.

If a look finds a root other than the revealed one, it needs the solver's step tree of the segment. If the
tree's root is not on the chain, the look plays a challenge that only asks for the tree (`games`); when the
look then accuses the seat, that game is dropped. If the solver's tree differs from the replay's, no seat is
accused, and the game continues against the solver.

Accounts of this process do not act against each other: a look at one of them takes no lock and asks for
nothing. There is one exception. A look may have opened a game that asks for the tree before the looked-at
account joined this process. The look then accuses this account, because only the accusation can drop the
game. The account answers the accusation, so all that is lost is the game's cost, which goes to the solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from protocol.chain.parameters import TOKEN
from protocol.chain.views import Seat, TaskStatus
from protocol.commitments.digests import seat_digest, segment_path
from protocol.dispute.keys import steps_key
from protocol.dispute.looks import Look
from protocol.dispute.view import Phase
from protocol.node.party.exits import Observation
from verifier.auditing import digest_parts
from verifier.context import Context
from verifier.database import Challenge
from verifier.findings import Committed
from verifier.jobs import GRACE, Job, unless_refused
from verifier.look_duties import compared, unopened
from verifier.look_events import Revealed
from verifier.salts import Salted, salt_of_challenge, salted_seats, secret_of


def jobs(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that send the transactions of looks, except accusations and answers."""
    task = seen.view.task
    for number in moot(context, seen):
        yield Job(task, f"moot {number}", partial(_close_moot, context, task, number))
    if seen.view.status is not TaskStatus.SUBMITTED or seen.audit is None or not seen.looks:
        return
    until = seen.audit.picked_at + context.terms(task).move_time
    for number, seat in unopened(context, seen):
        (own,) = salted_seats(context, seen, [seat])
        parts = digest_parts(context, seen, own)
        if parts is not None and seen.now <= until:
            yield Job(task, f"reveal {number}", partial(_reveal, context, seen, number, own, parts))
    for look in seen.looks:
        stands = context.looks.of(task, look.number)
        if stands is None:
            continue
        # The looking account gets half of the lock, so it may call first.
        grace = 0 if look.account in context.clients else GRACE
        if stands.accused is not None:
            # Even if another look already has the lock, because an open accusation prevents settlement.
            if seen.now > stands.until + grace and not _is_contested(context, stands.game):
                yield Job(task, f"take {look.number}", partial(_take_unanswered, context, task, look))
            continue
        silent, seat = stands.revealed is None and seen.now > until, looked_at(context, seen, look)
        if silent and not grace and not seat.caught and seat.account not in context.clients:
            yield Job(task, f"take {look.number}", partial(_take_unrevealed, context, task, look))


def moot(context: Context, seen: Observation) -> list[int]:
    """The numbers of the looks whose accusation nobody will judge any more. A look is included only if the
    accusation's bond goes to one of our accounts. After a conviction, the bond goes to the accused seat or
    look; if a jury has ended the task, it goes to the look that accused.
    """
    if seen.view.status is TaskStatus.SUBMITTED:
        return []
    task, convicted = seen.view.task, seen.view.status is TaskStatus.SLASHED
    due = {look: looked_at(context, seen, look) if convicted else look for look in seen.looks}
    own = [look for look, seat in due.items() if seat.account in context.clients]
    stands = {look.number: context.looks.of(task, look.number) for look in own}
    return [number for number, found in stands.items() if found is not None and found.accused is not None]


def asks(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that ask for the solver's step tree if one of our looks has found a root other than the revealed
    one.

    They ask only while the task's status is SUBMITTED, because nobody can be accused after that. Raises
    ChainError.
    """
    if seen.view.status is not TaskStatus.SUBMITTED:
        return
    for look, _ in different(context, seen):
        if not look.attested:
            continue  # it cannot accuse, and would lose its game
        segment, number = context.segments(seen.view.task, look.number)[0], look.number
        if context.database.challenge(seen.view.task, number) is not None:
            continue
        if context.client.game.claim(steps_key(seen.view.task, segment)).posted_at:
            continue
        yield Job(seen.view.task, f"ask {number}", partial(_ask, context, seen, look))


def asking(context: Context, seen: Observation, look: Seat) -> Challenge:
    """A challenge that only asks for the step tree of a look's segment. Raises BundleError, ChainError,
    CommitmentError.
    """
    view = seen.view
    roots = context.load(view.task).replayer.roots(Committed(view.root, view.size))
    (segment,) = context.segments(view.task, look.number)
    salt = salt_of_challenge(context.clients[look.account], view.task, look.number, segment)
    return Challenge(view.task, look.number, look.account, segment, salt, b"".join(roots), asks=True)


def different(context: Context, seen: Observation) -> Iterator[tuple[Seat, Revealed]]:
    """Our looks that have found a root other than the revealed one, each with the revealed data. A look is
    left out if the looked-at seat has already lost its lock. It is also left out if it looks at one of our
    own accounts, unless a game already asks for the step tree.
    """
    for own in compared(context, seen):
        look, view = own.seat, seen.view
        told = context.looks.revealed(view.task, look.number)
        (segment,) = context.segments(view.task, look.number)
        found = context.database.digest(view.task, own.hash, segment, view.root)
        same = told is None or found is None or found == told.segment_root
        seat = looked_at(context, seen, look)
        spared = seat.account in context.clients and not _is_asked(context, view.task, look)
        if told is not None and not same and not seat.caught and not spared:
            yield look, told


def looked_at(context: Context, seen: Observation, look: Seat) -> Seat:
    """The target of a look: a seat or another look."""
    number = Look.of(look.number).looked_at(context.terms(seen.view.task).segments_per_verifier)
    return next(seat for seat in seen.places if seat.number == number)


def _is_asked(context: Context, task: int, look: Seat) -> bool:
    """Whether a game that asks for the step tree of a look's segment is open."""
    row = context.database.challenge(task, look.number)
    return row is not None and row.asks and row.outcome is None and row.game is not None


def _is_contested(context: Context, game: int) -> bool:
    return bool(game) and context.client.game.game(game).phase is not Phase.CLOSED


def _ask(context: Context, seen: Observation, look: Seat) -> None:
    context.log.warning("a look differs", task=seen.view.task, look=look.number)
    context.database.put_challenge(asking(context, seen, look))


def _close_moot(context: Context, task: int, look: int) -> None:
    context.client.looks.close_moot(task, look)
    context.log.info("an accusation is moot", task=task, look=look)


def _reveal(
    context: Context, seen: Observation, look: int, own: Salted, parts: tuple[list[bytes], bytes | None]
) -> None:
    task, client = seen.view.task, context.clients[own.seat.account]
    index, _ = Look.of(look).leaf(context.terms(task).segments_per_verifier)
    segments, result = parts
    receipt = client.looks.reveal(
        task,
        look,
        secret_of(client, task, own.seat.number),
        seat_digest(segments, result),
        segments[index],
        segment_path(segments, result, index),
    )
    context.log.info("revealed", task=task, look=look, seat=own.seat.number, gas=receipt.gas_used)


def _take_unrevealed(context: Context, task: int, look: Seat) -> None:
    calls = context.clients[look.account].looks
    receipt = calls.take_unrevealed(task, look.number)
    paid = calls.event(receipt, "Unrevealed").arguments["paid"]
    context.metrics.caught.inc()
    context.log.warning("a seat did not open its digest", task=task, look=look.number, tokens=paid / TOKEN)


def _take_unanswered(context: Context, task: int, look: Seat) -> None:
    calls = context.clients.get(look.account, context.client).looks
    receipt = unless_refused(
        context.log, task, "takeUnanswered", partial(calls.take_unanswered, task, look.number)
    )
    if receipt is None:
        return
    paid = calls.event(receipt, "Unanswered").arguments["paid"]
    if look.account in context.clients:
        context.metrics.caught.inc()
    context.log.warning("a seat had no answer", task=task, look=look.number, tokens=paid / TOKEN)
