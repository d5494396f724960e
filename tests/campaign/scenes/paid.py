"""A task with honest parties only, from its posting to the withdrawal of its price."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.views import NOBODY, TaskStatus
from tests.adversaries.machines import Machine
from tests.campaign.parties import solver_beside, solver_under_test, verifier_beside, verifier_under_test
from tests.campaign.process_faults import party_of
from tests.campaign.scenes.steps import settled, to_the_round
from tests.campaign.stages import Stage, Who
from tests.campaign.world import VERIFIER, World
from tests.unit.solver import tiny
from verifier.strategy import HONEST, Strategy

TRAINING_STEP = 0.2
"""Additional seconds of a step, so that the twelve steps of the training last for some blocks."""
REPLAYED_STEP = 0.1
NOWHERE = "http://127.0.0.1:1"
"""An address at which no relay answers. The solver knows no other relay, so the verifier under test must
execute the draw.
"""


def paid(world: World, who: Who) -> Iterator[Stage]:
    """The stages of a task with honest parties. The solver, or the verifier with the only seat, is under
    test.
    """
    world.submitter.audit.resign()
    if who is Who.SOLVER:
        solver_under_test(world, dawdle=TRAINING_STEP)
        late = Machine({1: REPLAYED_STEP}).on_it(HONEST.executor)
        watcher = verifier_beside(world, VERIFIER, strategy=Strategy(executor=late))
    else:
        verifier_under_test(world, VERIFIER, dawdle=REPLAYED_STEP)
        solver_beside(world, relays=(NOWHERE,))
    world.begin()
    party = party_of(world)
    party.pause()  # otherwise it would ask for the bundle before the fault begins
    task = world.post_task(segments_per_verifier=tiny.SEGMENTS)
    yield Stage.BEFORE_THE_BID
    party.resume()
    world.reach(lambda: world.view(task).bidder != NOBODY)
    yield Stage.BIDDING
    world.reach(lambda: world.view(task).bidder != NOBODY)  # again, if a re-organisation reverted it
    world.skip_to(world.view(task).bids_until)
    world.reach(lambda: world.view(task).size > 1)
    yield Stage.TRAINING
    world.reach(lambda: world.view(task).status is TaskStatus.SUBMITTED)
    yield Stage.SUBMITTED
    to_the_round(world, task)
    audit = world.submitter.audit
    world.reach(lambda: bool(audit.audit(task).drawn_at))
    yield Stage.DRAWN
    if who is Who.SOLVER:
        checked = watcher.node.context.database.checked
        world.reach(lambda: bool(checked(task, world.view(task).root)))
    else:
        world.reach(lambda: world.party_said("equal", task=task))
    yield Stage.REPLAYING
    world.reach(lambda: audit.audit(task).audited)
    yield from settled(world, task)
