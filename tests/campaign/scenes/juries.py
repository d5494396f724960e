"""A jury: a seat claims that it cannot reach the solver, and fetches what it lacks from three jurors."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameters import TOKEN
from protocol.chain.views import JuryView
from tests.campaign.parties import solver_beside, solver_under_test, verifier_beside, verifier_under_test
from tests.campaign.scenes.steps import drawn, handed_in, settled
from tests.campaign.stages import Stage, Who
from tests.campaign.world import STARTING, TERMS, World, address
from tests.chain.rounds import ANYTHING
from tests.chain.test_verifier_juries import JURORS, cut_off
from tests.unit.solver import tiny

ACCOUNTS = (2, 5, 6, 7)
"""Indices of development accounts. The draw gives the task's only seat to one of these accounts; the others
are the jury.
"""
PERIOD, MOVE_TIME = int(TERMS["attest_period"]), int(TERMS["move_time"])
LOCK = 8 * TOKEN


def jury(world: World, who: Who) -> Iterator[Stage]:
    """The stages of a task with a jury. The party under test is the solver, or one verifier process with all
    jurors.
    """
    for index in ACCOUNTS:
        with world.client(f"dev:{index}") as client:
            client.fund(1_000 * TOKEN)
            client.audit.register(0, ANYTHING)
    world.submitter.audit.resign()
    if who is Who.SOLVER:
        solver_under_test(world)
    else:
        solver_beside(world)
    world.begin()
    task = world.post_task(jurors=JURORS, segments_per_verifier=tiny.SEGMENTS, seat_lock=LOCK)
    handed_in(world, task)
    drawn(world, task)
    audit = world.submitter.audit
    (seat,) = (index for index in ACCOUNTS if address(index) == audit.seat(task, 0).account)
    first, *others = sorted(set(ACCOUNTS) - {seat})
    if who is Who.SOLVER:
        verifier_beside(world, first, *others)
    else:
        verifier_under_test(world, first, *others)
        world.reach(lambda: world.party_said("ready"), STARTING)
    claimant = verifier_beside(world, seat, strategy=cut_off(world))
    world.reach(lambda: claimant.node.context.materials.find(task) is not None)
    world.skip_to(audit.seat(task, 0).until - PERIOD // 2)
    world.reach(lambda: bool(world.happened("Claimed", task=task)))
    drawn(world, task)
    yield Stage.JURY
    world.reach(lambda: _sitting(world, task).yes.bit_count() == JURORS)
    until = _sitting(world, task).until
    world.skip_to(until + MOVE_TIME // 2)
    world.reach(lambda: bool(claimant.node.context.juries.sources(task)))
    world.skip_to(until + MOVE_TIME)
    world.reach(lambda: audit.audit(task).audited)
    fee = world.submitter.market.terms(task).audit_fee
    world.gains(
        address(seat), -(fee + world.deployment.parameters.draw_fee)
    )  # because what it claimed to be missing was available
    for index in (first, *others):
        world.gains(address(index), fee // JURORS)
    yield from settled(world, task)


def _sitting(world: World, task: int) -> JuryView:
    found = world.submitter.audit.jury(task)
    assert found is not None, "it was drawn"
    return found
