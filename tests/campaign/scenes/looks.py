"""Looks: a verifier looks at a rubber stamp; or a verifier is looked at, is falsely accused, and defends its
seat.

The beacon decides which of the two accounts gets the seat. So a party whose account depends on this starts
after the draw.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameters import TOKEN
from tests.adversaries.rubber_stamp import RubberStamp
from tests.campaign.parties import solver_beside, solver_under_test, verifier_beside, verifier_under_test
from tests.campaign.scenes.steps import drawn, handed_in, settled
from tests.campaign.stages import Stage, Who
from tests.campaign.world import STARTING, World, address
from tests.chain.rounds import ANYTHING
from tests.chain.test_verifier_looks import ALWAYS, GAME_COST, LEVEL, LOCK, accuse

PAIR = (2, 5)


def looking(world: World, who: Who) -> Iterator[Stage]:
    """The stages of a look at a rubber stamp. The party under test is the verifier that looks, or the solver
    whose states that verifier needs.
    """
    task, seat, other = _seated(world, who)
    lazy = world.outsider(seat)
    if who is Who.SOLVER:
        verifier_beside(world, other)
    else:
        verifier_under_test(world, other)
        world.reach(lambda: world.party_said("ready"), STARTING)
    stamp = RubberStamp(lazy, task)
    world.act(stamp.attest)
    look = _picked(world, task)
    yield Stage.LOOKING
    world.reach(lambda: world.submitter.audit.seat(task, look).attested)
    world.act(stamp.reveal)
    world.reach(lambda: bool(world.happened("Accused", task=task)))
    world.skip_to(world.submitter.looks.look(task, look).until)
    world.reach(lambda: bool(world.happened("Unanswered", task=task)))
    if who is Who.VERIFIER:
        world.gains(address(other), LOCK // 2 - GAME_COST)  # its game pays the cost to the solver
    yield from settled(world, task)


def looked_at(world: World, who: Who) -> Iterator[Stage]:
    """The stages of a look at an honest seat, which is also accused, although its work is right. The seat's
    verifier is under test.
    """
    task, seat, other = _seated(world, who)
    false = world.outsider(other)
    verifier_under_test(world, seat)
    world.reach(lambda: world.party_said("ready"), STARTING)
    world.reach(lambda: world.submitter.audit.seat(task, 0).attested)
    look = _picked(world, task)
    yield Stage.LOOKED_AT
    world.reach(lambda: bool(world.happened("Revealed", task=task)))
    (revealed,) = (event.arguments for event in world.happened("Revealed", task=task))

    def accuses() -> None:
        false.audit.attest(task, look, bytes([1]) * 32, bytes([2]) * 32)
        accuse(world, false, task, look, revealed["salt"], revealed["segmentRoot"])

    world.act(accuses, lambda: bool(world.happened("Accused", task=task)))
    yield Stage.ACCUSED
    world.reach(lambda: bool(world.happened("Answered", task=task)))
    world.gains(address(seat), GAME_COST)
    yield from settled(world, task)


def _seated(world: World, who: Who) -> tuple[int, int, int]:
    """Bring an honest solver's task to the point where its seats are drawn. Every seat of the task will be
    looked at. Returns the task's id, the index of the account with the seat, and the index of the account
    without it.
    """
    for index in PAIR:
        with world.client(f"dev:{index}") as client:
            client.fund(1_000 * TOKEN)
            client.audit.register(LEVEL, ANYTHING)
    world.submitter.audit.resign()
    if who is Who.SOLVER:
        solver_under_test(world)
    else:
        solver_beside(world)
    world.begin()
    task = world.post_task(look_chance=ALWAYS, seat_lock=LOCK)
    handed_in(world, task)
    drawn(world, task)
    (seat,) = (index for index in PAIR if address(index) == world.submitter.audit.seat(task, 0).account)
    (other,) = set(PAIR) - {seat}
    return task, seat, other


def _picked(world: World, task: int) -> int:
    """Wait until the only look is drawn; returns its number."""
    audit = world.submitter.audit
    world.reach(lambda: audit.audit(task).level == 1)
    drawn(world, task)
    (look,) = audit.looks(task)
    return look.number
