"""Makes claims for seats: a claim says that an item is unavailable. Also objects if a jury says that the item
is available, and ends claims.

If the terms have jurors, a seat that lacks an item does not run the task from its start. Instead, at half of
its time, it claims the first item that it still lacks, even if that item is being sent. While the jury sits,
the seat keeps asking for the item; it also asks the jurors that voted yes (`material`). If it still lacks the
item at half of the time for objections, it objects and lets the jurors open a random chunk, even if only few
jurors have voted. After a verdict the seat's time begins again, and it asks all sources again. At half of
that time it claims the item that it lacks then: the next one, or the same one if the jury was undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import SystemRandom

from protocol.chain.parameters import TOKEN
from protocol.chain.views import Seat
from protocol.dispute.juries import (
    JURY_DRAWS,
    JuryVerdict,
    Objection,
    choose_objection,
    choose_unseen,
    constants_item,
    item_of,
    most_claims,
)
from protocol.node.party.exits import Observation
from protocol.node.party.funds import require_free
from protocol.node.party.juries import Ending, ending_due
from verifier import auditing, juror
from verifier.context import Context
from verifier.findings import FETCH_SHARE, Committed
from verifier.jobs import GRACE, Job, unless_refused
from verifier.salts import salted_seats
from verifier.seats import attestable


def jobs(context: Context, seen: Observation) -> Iterator[Job]:
    """Jobs that send the transactions of our claims, and jobs that end a claim, whether ours or another
    party's: they request a verdict that is due, or drop a claim that nobody will judge.
    """
    task = seen.view.task
    jury = context.juries.of(task)
    if jury is None or jury.claim is None:
        yield from _claims(context, seen)
        return
    terms, claim, own = context.terms(task), jury.claim, jury.claim.account in context.clients
    due = ending_due(claim, jury.view, terms, seen.view.status, seen.now - (0 if own else GRACE))
    if due is Ending.DROP:
        # The claimant wants its bond; others because a claim that nobody will judge blocks further claims.
        if own or attestable(seen, context.clients):
            yield Job(task, "drop", partial(_drop, context, task))
    elif due is Ending.CLOSE:
        yield Job(task, "close", partial(_close, context, task))
    elif own and jury.may_object(terms, seen.now) and lacks(context, seen, claim.item):
        yield Job(task, "object", partial(_object, context, task, claim.account, claim.item))


def bound(context: Context, seen: Observation) -> bool:
    """Whether a task has an open claim of this verifier, which locks a bond even after the task's end."""
    jury = context.juries.of(seen.view.task)
    return jury is not None and jury.claim is not None and jury.claim.account in context.clients


def missing_items(context: Context, seen: Observation, seat: Seat) -> list[int]:
    """The items that a seat lacks, in the order in which it needs them. Without the bundle, the list is empty
    until fetching the bundle has failed; then it holds the constants. With the bundle, the list is empty
    until a request has failed, or until more than `FETCH_SHARE` of the attestation period has passed since
    the first request.

    The item of a segment is the state before it (`item_of`), except for the first segment. The state before
    that one is in the bundle, so only the solver's roots can be missing; the item is then the state after it.
    """
    view, terms = seen.view, context.terms(seen.view.task)
    material = context.materials.find(view.task)
    if material is None:
        return [constants_item(terms.segments)] if context.materials.was_refused(terms) else []
    committed = Committed(view.root, view.size)
    replayer = material.replayer
    waits = replayer.awaited(committed) > terms.attest_period * FETCH_SHARE  # a fetch may be running
    if not waits and not replayer.has_withheld(committed):
        return []
    (own,) = salted_seats(context, seen, [seat])
    digested = context.database.digested(view.task, own.hash, view.root)
    due = [segment for segment in auditing.segments_of(context, seen, seat) if segment not in digested]
    missing = [item_of(segment) for segment in due if not replayer.is_here(committed, segment)]
    return list(dict.fromkeys(missing))


def lacks(context: Context, seen: Observation, item: int) -> bool:
    """Whether an item is still not on this machine."""
    view, terms = seen.view, context.terms(seen.view.task)
    if item == constants_item(terms.segments):
        return not context.materials.has_bundle(terms)
    material = context.materials.find(view.task)
    if material is None:  # about to be loaded, if the bundle is here
        return not context.materials.has_bundle(terms)
    return not juror.is_here(context, seen, material, item)


def objection(context: Context, task: int, item: int) -> Objection:
    """An objection that names a random chunk of an item. If the program is here, the chunk is chosen by the
    sizes of the tensors.
    """
    terms, material = context.terms(task), context.materials.find(task)
    constants = item == constants_item(terms.segments)
    if material is None:
        return choose_unseen(terms.constants if constants else terms.state_tensors, SystemRandom())
    program = material.work.program
    types = program.fixed_types if constants else program.state_types
    return choose_objection([type_.nbytes for type_ in types], SystemRandom())


def _claims(context: Context, seen: Observation) -> Iterator[Job]:
    seats = attestable(seen, context.clients)
    if seen.audit is None or seen.audit.pending or seen.audit.claimant or not seats:
        return
    if seen.audit.draws >= JURY_DRAWS:
        return
    terms = context.terms(seen.view.task)
    most = most_claims(terms.segments_per_verifier)
    for seat in seats if terms.jurors else ():
        late = seen.now > seat.until - terms.attest_period // 2
        if late:
            missing = missing_items(context, seen, seat)
            # An item that a jury found available comes from its jurors; the solver may withhold another one.
            item = next(
                (item for item in missing if context.juries.may_claim(seen.view.task, seat, item, most)), None
            )
            if item is not None:
                # A task has one jury at a time.
                yield Job(seen.view.task, "claim", partial(_claim, context, seen.view.task, seat, item))
                return


def _claim(context: Context, task: int, seat: Seat, item: int) -> None:
    client = context.clients[seat.account]
    bond = context.terms(task).audit_fee + client.deployment.parameters.draw_fee
    require_free(client, bond, "to claim that data are withheld")
    receipt = client.juries.claim(task, seat.number, item)
    context.metrics.claims.inc()
    context.log.warning(
        "claimed", task=task, seat=seat.number, item=item, tokens=bond / TOKEN, gas=receipt.gas_used
    )


def _object(context: Context, task: int, account: str, item: int) -> None:
    chosen = objection(context, task, item)
    receipt = context.clients[account].juries.object(task, chosen)
    context.metrics.objections.inc()
    context.log.warning("objected", task=task, item=item, tensor=chosen.tensor, gas=receipt.gas_used)


def _close(context: Context, task: int) -> None:
    calls = context.client.juries
    receipt = unless_refused(context.log, task, "close", partial(calls.close, task))
    if receipt is None:
        return
    told = calls.event(receipt, "Judged").arguments
    verdict = JuryVerdict(told["verdict"]).name.lower()
    context.log.warning(
        "judged", task=task, item=told["item"], verdict=verdict, yes=told["yes"], no=told["no"]
    )


def _drop(context: Context, task: int) -> None:
    receipt = unless_refused(context.log, task, "drop", partial(context.client.juries.drop, task))
    if receipt is not None:
        context.log.info("a claim was dropped", task=task)
