"""Steps that scenes share to get from one stage to the next."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from tests.campaign.stages import Stage
from tests.campaign.world import SOLVER, STAKE, World, address

BOND = 20 * TOKEN
"""The most token units that a verifier may leave free in the vault: the bond of a commitment."""


def sold(world: World, task: int) -> None:
    """Wait for a bid, then skip to the end of the bidding."""
    world.reach(lambda: world.view(task).bidder != NOBODY)
    world.skip_to(world.view(task).bids_until)


def handed_in(world: World, task: int) -> None:
    """Wait until the task is sold, trained and submitted, skipping the rest of the bidding."""
    sold(world, task)
    world.reach(lambda: world.view(task).status is TaskStatus.SUBMITTED)


def drawn(world: World, task: int) -> None:
    """Skip to the round of the requested draw (of seats, looks or jurors) and wait until the draw is
    executed.
    """
    to_the_round(world, task)
    world.reach(lambda: not world.submitter.audit.audit(task).pending)


def to_the_round(world: World, task: int) -> None:
    """Wait until a draw is requested, then skip to its beacon round. After a re-organisation, a draw is
    requested again.
    """
    audit = world.submitter.audit
    world.reach(lambda: bool(audit.audit(task).round))
    world.skip_to(world.deployment.beacon.time_of(audit.audit(task).round))


def settled(world: World, task: int) -> Iterator[Stage]:
    """The stages after the last attestation, until the task is settled, the earnings are withdrawn and the
    seats are released. Also notes what the solver and the seats must gain.
    """
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
    """Wait until honest seats are released and their accounts have withdrawn what they earned."""
    vault, own = world.submitter.vault, set(world.honest.values())
    world.reach(lambda: all(seat.released for seat in world.seats(task) if seat.account in own))
    world.reach(
        lambda: all(vault.free(seat.account) <= BOND for seat in world.seats(task) if seat.account in own)
    )
