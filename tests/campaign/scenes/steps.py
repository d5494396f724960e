"""What scenes have in common: the ways between their stages."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from tests.campaign.stages import Stage
from tests.campaign.world import SOLVER, STAKE, World, address

BOND = 20 * TOKEN
"""What a verifier may keep in the vault for a commitment."""


def sold(world: World, task: int) -> None:
    """Somebody has bid, and the bidding is over."""
    world.reach(lambda: world.view(task).bidder != NOBODY)
    world.skip_to(world.view(task).bids_until)


def handed_in(world: World, task: int) -> None:
    """Sold, trained, submitted."""
    sold(world, task)
    world.reach(lambda: world.view(task).status is TaskStatus.SUBMITTED)


def drawn(world: World, task: int) -> None:
    """The draw that was asked for is executed, be it of seats, looks or jurors."""
    to_the_round(world, task)
    world.reach(lambda: not world.submitter.audit.audit(task).pending)


def to_the_round(world: World, task: int) -> None:
    """The beacon's round of the draw that was asked for, or will be again after a re-organisation, is there."""
    audit = world.submitter.audit
    world.reach(lambda: bool(audit.audit(task).round))
    world.skip_to(world.deployment.beacon.time_of(audit.audit(task).round))


def settled(world: World, task: int) -> Iterator[Stage]:
    """From the last attestation on: settle, withdraw, release."""
    world.skip_to(world.view(task).challenge_until)
    yield Stage.SETTLING
    world.reach(lambda: world.view(task).status.is_over)
    view, vault = world.view(task), world.submitter.vault
    assert view.status is TaskStatus.SETTLED
    world.gains(view.solver, view.price)
    fee = world.submitter.market.terms(task).seat_fee
    for seat in world.seats(task):
        world.gains(seat.account, fee if seat.attested and not seat.caught else 0)
    yield Stage.WITHDRAWING
    world.reach(lambda: vault.free(address(SOLVER)) <= STAKE * TOKEN)
    left_alone(world, task)


def left_alone(world: World, task: int) -> None:
    """All that is over for honest seats: they are released, and what they have earned is taken out."""
    vault, own = world.submitter.vault, set(world.honest.values())
    world.reach(lambda: all(seat.released for seat in world.seats(task) if seat.account in own))
    world.reach(
        lambda: all(vault.free(seat.account) <= BOND for seat in world.seats(task) if seat.account in own)
    )
