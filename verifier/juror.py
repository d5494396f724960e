"""Jury duty: fetch the item that a seat says it cannot get, keep and serve it, vote, and open the chunk that
the claimant requests.

The module `auditing` does the fetching of the item, because a juror needs the same data as a seat. A juror
that votes yes starts to serve the item before its vote, and serves it until the task is over. A claim names
only one item, but the claimant may need further states. The juror serves these states too (`keeping`), if
they are available and the disk has room beyond the space that is reserved for duties. A juror that still
lacks the item at three quarters of its time votes no, because silence is punished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import SystemRandom

from protocol.chain.views import Seat, TaskStatus
from protocol.commitments import segment_tree
from protocol.commitments.groups import groups
from protocol.commitments.hashing import BytesLike
from protocol.dispute.juries import (
    UNAVAILABLE,
    Objection,
    constants_item,
    item_of,
    possession_digest,
    show,
)
from protocol.dispute.openings import NO_LEAF, Leaf
from protocol.node.party.exits import Observation
from verifier.context import Context
from verifier.errors import DiskFull
from verifier.findings import Committed
from verifier.jobs import Job
from verifier.jury import Jury
from verifier.material import Material
from verifier.salts import salted, secret_of
from verifier.seats import due_segments

Held = tuple[Sequence[BytesLike], Leaf]
"""An item's tensors as canonical bytes, and its leaf in the segment tree if it is a state."""


def awaited(context: Context, seen: Observation) -> Iterator[tuple[Seat, int]]:
    """Our jurors that can still vote, each with the item to fetch."""
    jury = _sitting(context, seen)
    if jury is None or jury.claim is None or jury.view is None or seen.now > jury.view.until:
        return
    for juror in jury.jurors:
        if juror.account in context.clients and not jury.has_voted(juror):
            yield juror, jury.claim.item


def further(context: Context, seen: Observation) -> list[int]:
    """The states that our jurors serve in addition to the item, if they voted yes. They serve the states that
    a claimant needs, until the claimant has attested.
    """
    if seen.view.status is not TaskStatus.SUBMITTED or not context.juries.has_voted_yes(
        seen.view.task, context.clients
    ):
        return []
    claimants = [seat for seat in seen.places if context.juries.has_claimed(seen.view.task, seat)]
    return sorted(
        {
            item_of(segment)
            for seat in claimants
            if not seat.attested
            for segment in due_segments(seat, context.segments(seen.view.task, seat.number), seen.view.size)
        }
    )


def keeping(context: Context, seen: Observation) -> Iterator[Job]:
    """At most one job, which fetches and keeps one of the further states. The state is chosen at random each
    time, so that an unavailable one does not delay the others. The job waits for strangers, so it has a
    separate worker.
    """
    task = seen.view.task
    lacking = [item for item in further(context, seen) if not context.items.has_state(task, item)]
    if lacking and context.materials.has_bundle(context.terms(task)):
        yield Job(task, "keep", partial(_keep, context, seen, SystemRandom().choice(lacking)))


def deadlines(context: Context, seen: Observation) -> Iterator[int]:
    """The times by which our jurors must vote or open a chunk."""
    jury = _sitting(context, seen)
    if jury is None or jury.claim is None or jury.view is None:
        return
    if any(True for _ in awaited(context, seen)):
        yield jury.view.until
    if any(True for _ in openings(context, seen)):
        yield jury.claim.until


def is_here(context: Context, seen: Observation, material: Material, item: int) -> bool:
    """Whether an item is on this machine. Constants always are, because they are in the bundle. For a state,
    the roots must be here too.
    """
    if item == constants_item(material.terms.segments) or context.items.has_state(seen.view.task, item):
        return True
    return material.replayer.is_here(Committed(seen.view.root, seen.view.size), item + 1)


def votes(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs for the yes votes of our jurors that have the item. Each hashes the whole item."""
    for juror, item in awaited(context, seen):
        material = context.materials.find(seen.view.task)
        if material is not None and is_here(context, seen, material, item):
            work = partial(_vote_yes, context, seen, juror, item)
            jury = _sitting(context, seen)
            assert jury is not None, "a juror sits in it"
            assert jury.view is not None, "it was drawn"
            yield Job(seen.view.task, f"vote {juror.number}", work, context.work_by(jury.view.until))


def refusals(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs for the no votes of our jurors that have waited long enough for the item."""
    task, jury = seen.view.task, _sitting(context, seen)
    for juror, item in awaited(context, seen):
        material = context.materials.find(task)
        has = material is not None and is_here(context, seen, material, item)
        assert jury is not None, "a juror sits in it"
        assert jury.view is not None, "it was drawn"
        if not has and seen.now > jury.view.until - context.terms(task).attest_period // 4:
            yield Job(task, f"refuse {juror.number}", partial(_vote_no, context, task, juror, item))


def openings(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs in which our jurors open the chunk that the claimant's objection names."""
    jury = _sitting(context, seen)
    if jury is None or jury.claim is None or jury.objection is None or seen.now > jury.claim.until:
        return
    for juror in jury.jurors:
        if juror.account in context.clients and jury.owes_opening(juror):
            work = partial(_open, context, seen, juror, jury.claim.item, jury.objection)
            until = context.work_by(jury.claim.until)
            yield Job(seen.view.task, f"open {juror.number}", work, until)


def releasable(context: Context, seen: Observation) -> list[Seat]:
    """Our jurors that are still bound although the task is no longer audited."""
    jury = context.juries.of(seen.view.task)
    if jury is None or seen.view.status is TaskStatus.SUBMITTED:
        return []
    own = [juror for juror in jury.jurors if juror.account in context.clients]
    return [juror for juror in own if not juror.released and not juror.caught]


def _sitting(context: Context, seen: Observation) -> Jury | None:
    return context.juries.of(seen.view.task) if seen.view.status is TaskStatus.SUBMITTED else None


def _held(context: Context, seen: Observation, item: int) -> Held:
    """Load the item, which must be here, and serve it from now on. Raises BundleError, ChainError,
    CommitmentError, OSError.
    """
    task, material = seen.view.task, context.load(seen.view.task)
    program, terms = material.work.program, material.terms
    if item == constants_item(terms.segments):
        from protocol.numerics.types import canonical_buffer

        context.items.hold_bundle(task, terms.bundle_hash)
        pairs = zip(program.fixed_types, material.work.fixed, strict=True)
        return [canonical_buffer(tensor, type_.dtype) for type_, tensor in pairs], NO_LEAF
    found = context.items.state(task, item, [type_.nbytes for type_ in program.state_types])
    if found is None:
        committed = Committed(seen.view.root, seen.view.size)
        kept = material.replayer.state(committed, item)
        assert kept is not None, "who asks has seen to it that it is here"
        state, roots = kept
        found = [bytes(tensor.data) for tensor in program.checkpoint(state).tensors], list(roots)
        context.items.hold_state(task, item, roots, partial(material.states.link, item, roots[item]))
    tensors, roots = found
    return tensors, Leaf(roots[item], segment_tree(roots).inclusion_path(item))


def _keep(context: Context, seen: Observation, item: int) -> None:
    """Fetch a state if needed, and serve it. Raises DiskFull, Unserved, BundleError, ChainError,
    CommitmentError, OSError.
    """
    material = context.load(seen.view.task)
    replayer, committed = material.replayer, Committed(seen.view.root, seen.view.size)
    if not replayer.is_here(committed, item + 1):
        sizes = [type_.nbytes for type_ in material.work.program.state_types]
        # A group of one tensor is a link to the state's file; the others are written again.
        joined = sum(sizes[k] for numbers in groups(sizes) if len(numbers) > 1 for k in numbers)
        due, room = sum(sizes) + joined, context.room()
        if room < due:
            raise DiskFull(
                f"room for state {item}, which is served to a claimant",
                expected=f"{due} bytes beside `spare_gib`",
                got=f"{max(0, room)} bytes",
                remedy="free some of the disk; what own seats and votes need is fetched all the same",
            )
        replayer.ask(committed, [item + 1])
    _held(context, seen, item)
    context.log.info("serves a state", task=seen.view.task, item=item)


def _vote_yes(context: Context, seen: Observation, juror: Seat, item: int) -> None:
    assert seen.audit is not None, "jurors are drawn"
    task, client = seen.view.task, context.clients[juror.account]
    tensors, _ = _held(context, seen, item)
    own = salted(client, task, juror, seen.audit.seed)
    receipt = client.audit.attest(task, juror.number, possession_digest(own.salt, tensors), own.hash)
    context.metrics.votes.labels("yes").inc()
    context.log.info("voted yes", task=task, juror=juror.number, item=item, gas=receipt.gas_used)


def _vote_no(context: Context, task: int, juror: Seat, item: int) -> None:
    client = context.clients[juror.account]
    receipt = client.audit.attest(task, juror.number, UNAVAILABLE, UNAVAILABLE)
    context.metrics.votes.labels("no").inc()
    context.log.warning("voted no", task=task, juror=juror.number, item=item, gas=receipt.gas_used)


def _open(context: Context, seen: Observation, juror: Seat, item: int, objection: Objection) -> None:
    assert seen.audit is not None, "jurors are drawn"
    task, client = seen.view.task, context.clients[juror.account]
    tensors, state = _held(context, seen, item)
    own = salted(client, task, juror, seen.audit.seed)
    shown = show(tensors, own.salt, objection, state)
    secret = secret_of(client, task, juror.number)
    digest = possession_digest(own.salt, tensors)
    receipt = client.juries.open(task, juror.number, secret, digest, shown)
    context.metrics.openings.inc()
    context.log.info("opened", task=task, juror=juror.number, item=item, gas=receipt.gas_used)
