"""Works for the seats of one verifier: replays their segments, holds the result, attests, and challenges
differences from the commitment.

Each time, what to do next is decided from the chain and the database, so a restart or a failure costs at most
a replay. A segment gets its verdict in steps: fetch the bundle, load it, ask the solver for the state before
the segment, replay. If the solver does not serve that state, what follows depends on the terms. With jurors,
`item_claims` claims that the state is unavailable; without jurors, the task is run from its start. This
module also fetches and loads the items that our own jurors (`juror`) need. Only two kinds of work wait for
strangers: fetching and asking. They have their own threads, at most one per task. The result counts as one
more segment, without steps (`findings.Committed`).

A seat attests the digest of its replayed states under its own salt. So its segments are replayed after the
draw, even if they were already replayed before. One replay digests a segment for all of our seats that have
it. Nothing is attested until all digests are here. If a challenged solver withholds states, the digests are
those of our own run from the start. A look is treated as a seat with one segment and without the result. The
digests that `looking` compares are also made here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, zip_longest
from typing import TypeVar

from protocol.chain.views import Seat, TaskStatus
from protocol.commitments.digests import Digester, seat_digest
from protocol.dispute.keys import NO_SEAT
from protocol.dispute.looks import is_look
from protocol.node.party.exits import Observation
from protocol.tasks import owed
from protocol.tasks.admission import admission
from verifier import juror
from verifier.context import Context
from verifier.database import UNTIL_OVER, Challenge
from verifier.deadlines import replays_due
from verifier.findings import FETCH_SHARE, Committed, Different
from verifier.jobs import Job, Jobs
from verifier.look_duties import compared, revealing_seats
from verifier.material import Material
from verifier.salts import Salted, salt_of_challenge, salted_seats
from verifier.seats import attestable, due_segments, open_segments, own_seats, waits_for_jury

SLICE_SECONDS = 3.0
AHEAD = 256
"""Limit on the segments, besides those of our seats, that a whistleblower considers in one call of `offer`."""
ASKED_AT_ONCE = 16
"""Limit on the segments for which one job requests checkpoints."""

Found = TypeVar("Found")
_Missing = dict[int, tuple[Material | None, Committed, list[int]]]
"""Maps a task to its material (None if it is not loaded), its commitment, and the segments whose states must
be requested.
"""


def attestations(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that attest our seats and looks as soon as all their digests are here. By then, the task's result
    is held for its seats, unless `_digest_own` made the digest of the result.

    A verifier that has challenged the solver attests the states that it computed itself, so that it does not
    count as silent. It attests only while one of its games against the solver is open. The task cannot be
    settled during that time, so nobody is paid because of the attestation.
    """
    task = seen.view.task
    seats = [seat for seat in attestable(seen, context.clients) if not waits_for_jury(seen, seat)]
    for own in salted_seats(context, seen, seats):
        parts = digest_parts(context, seen, own)
        # Read in this order, because a replay notes a difference before its digest.
        if parts is not None and _may_attest(context, task):
            work = partial(_attest, context, task, own, seat_digest(*parts))
            yield Job(task, f"attest {own.seat.number}", work)


def _may_attest(context: Context, task: int) -> bool:
    """Whether this verifier may attest: it has not challenged the solver, or one of its games against the
    solver is open.
    """
    challenges = context.database.challenges(task)
    return not challenges or any(row.game is not None and row.outcome is None for row in challenges)


def offer(context: Context, observed: Sequence[Observation], fetches: Jobs, replays: Jobs) -> None:
    """Offer the next step of every segment that is due. Fetches are offered in order of the time that failed
    fetches of their task have cost, the least first.

    If the solver is challenged, a run from the start finds nothing new, so it is made only for the digests of
    our seats.
    """
    turns = sorted(observed, key=lambda seen: _turn(context, seen, replays))
    challenged = {seen.view.task for seen in turns if context.database.challenges(seen.view.task)}
    missing: _Missing = {}
    own = {seen.view.task: tuple(_own(context, seen)) for seen in turns}
    for seen, segment in _due(context, turns, challenged, own):
        task, committed = seen.view.task, Committed(seen.view.root, seen.view.size)
        material = _at_hand(context, seen, replays, missing)
        if material is None:
            continue
        if material.replayer.is_here(committed, segment):
            work = partial(_replay, context, seen, material, committed, segment)
            mine = segment in own[task] and task not in challenged and not replays.rests.lost(task)
            until = _until(context, seen, own[task]) if mine else math.inf
            replays.offer(Job(task, f"replay {segment}", work, until))
            continue
        missing.setdefault(task, (material, committed, []))[2].append(segment)
        if material.replayer.has_withheld(committed) and _runs(context, seen, material):
            # One run from the start serves all segments of its task.
            run = _digest_own if task in challenged else _replay
            if task not in challenged or attestable(seen, context.clients):
                replays.offer(Job(task, "run", partial(run, context, seen, material, committed, segment)))
    for seen in turns:
        for _, item in juror.awaited(context, seen):
            material = _at_hand(context, seen, replays, missing)
            if material is not None and not juror.is_here(context, seen, material, item):
                committed = Committed(seen.view.root, seen.view.size)
                asked = missing.setdefault(seen.view.task, (material, committed, []))[2]
                asked.insert(0, item + 1)  # first, because a whistleblower's list may be long
    for task in sorted(missing, key=fetches.rests.lost):
        material, committed, segments = missing[task]
        if material is None:
            fetch = partial(context.fetch, task, fetches.rests.lost(task))
        else:
            seconds = material.terms.attest_period * FETCH_SHARE
            fetch = partial(material.replayer.ask, committed, segments[:ASKED_AT_ONCE], seconds)
        fetches.offer(Job(task, "fetch", fetch))


def _at_hand(context: Context, seen: Observation, replays: Jobs, missing: _Missing) -> Material | None:
    """The material of a task if it is in memory. Otherwise a job to load it is offered, or its bundle is
    noted as missing.
    """
    task = seen.view.task
    material = context.materials.find(task)
    if material is None and context.materials.has_bundle(context.terms(task)):
        context.materials.want(task, context.terms(task))
        due = context.work_by(replays_due(context, seen))
        replays.offer(Job(task, "load", partial(_load, context, task), due))
    elif material is None:
        missing.setdefault(task, (None, Committed(seen.view.root, seen.view.size), []))
    return material


def _runs(context: Context, seen: Observation, material: Material) -> bool:
    """Whether the task is run from its start when the solver withholds something. Without jurors, it always
    is. With jurors, a seat claims instead, and a whistleblower runs the task only after a jury has found that
    data are withheld.
    """
    if not material.terms.jurors:
        return True
    return context.settings.whistleblow and seen.view.status is TaskStatus.UNPAID


def _turn(context: Context, seen: Observation, replays: Jobs) -> tuple[float, int, int]:
    """Sort key of tasks. First come the tasks that are not run from their start, sorted by deadline. Then
    come the tasks that are run from their start, sorted by progress, the least advanced first. Last come the
    tasks whose replays failed, sorted by lost time, the least first.
    """
    task = seen.view.task
    until = replays_due(context, seen)
    return replays.rests.lost(task), context.database.own_segments(task), until


def _until(context: Context, seen: Observation, segments: Sequence[int]) -> float:
    """The time by which the replays for our seats in a task must be done. It is infinite if these replays
    alone, without any other work, cannot be done in time; they then have the lowest priority.
    """
    due, terms = replays_due(context, seen), context.terms(seen.view.task)
    mine = owed.seat("", terms, sum(segment < seen.view.size for segment in segments), due)
    fits = admission([mine], context.clocks(context.client, seen.now), context.rates) is None
    return context.work_by(due, mine.waits) if fits else math.inf


def _due(
    context: Context,
    turns: Sequence[Observation],
    challenged: Container[int],
    segments: Mapping[int, Sequence[int]],
) -> Iterator[tuple[Observation, int]]:
    """The segments that are due: first the `segments` that our seats need in all tasks; then, for a
    whistleblower with room on its disk, at most `AHEAD` further unchecked segments of the tasks that it has
    not challenged.
    """
    live = [seen for seen in turns if seen.view.task not in challenged]
    late = [seen for seen in turns if seen.view.task in challenged]
    own = ((seen, segment) for seen in [*live, *late] for segment in segments[seen.view.task])
    if not context.settings.whistleblow or context.disk.is_over_limit:
        return own
    # One segment of each task in turn, so that a large task does not delay the others.
    rounds = zip_longest(*(_others(context, seen) for seen in live))
    return chain(own, islice((item for turn in rounds for item in turn if item is not None), AHEAD))


def _own(context: Context, seen: Observation) -> Iterator[int]:
    """The segments that still need a digest for our seats. Each seat's segments are followed by the number
    that stands for the result. Once segments can no longer be challenged, a digest is needed only for the
    segments that our looks compare, because a look may accuse as long as the task is submitted.
    """
    if open_segments(seen):
        due = _digesting(context, seen)
    else:
        due = compared(context, seen) if seen.view.status is TaskStatus.SUBMITTED else []
    for own in due:
        digested = context.database.digested(seen.view.task, own.hash, seen.view.root)
        for segment in segments_of(context, seen, own.seat):
            if segment not in digested:
                yield segment


def _digesting(context: Context, seen: Observation) -> list[Salted]:
    """The seats and looks for which segments are digested, each with the salt of the digest: our seats and
    looks that have not attested, our looks whose targets have revealed their salts (with those salts), and
    our seats and looks that are looked at and have not revealed their digests.

    There is one exception: our attested seats and looks are included too if a game is played on the task, but
    this database has no challenge against the task's solver. This happens, for example, if an old copy of the
    database was restored. The replay then finds the difference a second time, and the journal has the game's
    moves.
    """
    unknown = seen.view.open_games and not context.database.challenges(seen.view.task)
    seats = own_seats(seen, context.clients, attested=bool(unknown))
    own = salted_seats(context, seen, seats)
    return [*own, *compared(context, seen), *revealing_seats(context, seen)]


def segments_of(context: Context, seen: Observation, seat: Seat) -> tuple[int, ...]:
    """The segments of a seat or look that must be digested."""
    return due_segments(seat, context.segments(seen.view.task, seat.number), seen.view.size)


def digest_parts(context: Context, seen: Observation, own: Salted) -> tuple[list[bytes], bytes | None] | None:
    """The digests of the segments of one of our seats, and the digest of the result (None for a look).
    Returns None until all digests are here.
    """
    view = seen.view
    due = segments_of(context, seen, own.seat)
    found = [context.database.digest(view.task, own.hash, segment, view.root) for segment in due]
    digests = [digest for digest in found if digest is not None]
    if len(digests) < len(due):
        return None
    return (digests, None) if is_look(own.seat.number) else (digests[:-1], digests[-1])


def _others(context: Context, seen: Observation) -> Iterator[tuple[Observation, int]]:
    """The segments of a task that may still be challenged and that have not been found equal yet."""
    checked = context.database.checked(seen.view.task, seen.view.root)
    return ((seen, segment) for segment in open_segments(seen) if segment not in checked)


def _load(context: Context, task: int) -> None:
    context.load(task)


def _replay(
    context: Context, seen: Observation, material: Material, committed: Committed, segment: int
) -> None:
    """Compare one segment and note the finding. Raises ChainError, CommitmentError, TwoReplays, OSError.

    A run from the start is interrupted after `SLICE_SECONDS`, because other seats may be due, and resumed
    later.
    """
    task, root = seen.view.task, committed.root
    seats, digesters = _undigested(context, seen, material, segment)
    finding = _for_a_slice(lambda: material.replayer.audit(committed, segment, digesters))
    if finding is None:
        return
    if isinstance(finding, Different):
        context.log.warning("different", task=task, segment=finding.segment, solver=seen.view.solver)
        _challenge(context, task, segment, finding)
    elif segment == committed.size:
        context.results.hold(task, segment - 1, material.states.tensors(segment - 1, seen.view.result))
        context.database.hold(task, UNTIL_OVER)
        context.log.info("held", task=task)
    else:
        context.database.check(task, segment, root)
        context.log.info("equal", task=task, segment=segment)
    if finding.digests is not None:
        _note(context, seen, segment, seats, finding.digests)


def _digest_own(
    context: Context, seen: Observation, material: Material, committed: Committed, segment: int
) -> None:
    """Digest a segment of our own run, or its result. These digests are attested while a challenged solver
    withholds the states that it committed to. Raises ChainError, CommitmentError, TwoReplays, OSError.
    """
    seats, digesters = _undigested(context, seen, material, segment)
    digests = _for_a_slice(lambda: material.replayer.digest_own(committed, segment, digesters))
    if digests is not None:
        _note(context, seen, segment, seats, digests)
        context.log.info("digested", task=seen.view.task, segment=segment)


def _undigested(
    context: Context, seen: Observation, material: Material, segment: int
) -> tuple[list[Salted], list[Digester]]:
    """The seats that need a digest of a segment from us, and their digesters."""
    task, view = seen.view.task, seen.view
    seats = [
        own
        for own in _digesting(context, seen)
        if segment in segments_of(context, seen, own.seat)
        and context.database.digest(task, own.hash, segment, view.root) is None
    ]
    return seats, [own.digester(material.terms.thinning) for own in seats]


def _note(
    context: Context, seen: Observation, segment: int, seats: Sequence[Salted], digests: Sequence[bytes]
) -> None:
    """Record the digests of a segment, one per seat."""
    for own, digest in zip(seats, digests, strict=True):
        context.database.put_digest(seen.view.task, own.hash, segment, seen.view.root, digest)


def _for_a_slice(work: Callable[[], Found]) -> Found:
    """Call `work` until it returns something other than None, but for about `SLICE_SECONDS` at most."""
    end = time.monotonic() + SLICE_SECONDS
    found = work()
    while found is None and time.monotonic() < end:
        found = work()
    return found


def _challenge(context: Context, task: int, segment: int, finding: Different) -> None:
    """Record the challenges that follow from a difference. Raises ChainError.

    If the false segment is known, each of our seats and looks that has it challenges. Each of them challenges
    from its own account, because only then does a conviction pay it. If the false segment is not known, just
    one of our seats or looks challenges, namely one that has the replayed `segment`. If no seat or look of
    ours can challenge by these rules, one account challenges without a seat: the account of one of our seats
    or looks that has the replayed `segment`, or the main account if there is none.
    """
    board = context.client.audit
    places = [*board.seats(task), *(board.looks(task) if board.audit(task).looks else ())]
    seats = [seat for seat in places if seat.account in context.clients]
    false = segment if finding.segment is None else finding.segment
    found = [(seat.number, seat.account) for seat in seats if false in context.segments(task, seat.number)]
    named = found[:1] if finding.segment is None else found
    replaying = [seat.account for seat in seats if segment in context.segments(task, seat.number)]
    for number, account in named or [(NO_SEAT, (*replaying, context.client.address)[0])]:
        salt = salt_of_challenge(context.clients[account], task, number, finding.segment)
        context.database.put_challenge(
            Challenge(task, number, account, finding.segment, salt, b"".join(finding.roots))
        )


def _attest(context: Context, task: int, own: Salted, digest: bytes) -> None:
    client, seat = context.clients[own.seat.account], own.seat.number
    context.database.put_attested(task, seat, own.hash, digest)
    receipt = client.audit.attest(task, seat, digest, own.hash)
    context.log.info("attested", task=task, seat=seat, account=client.address, gas=receipt.gas_used)
