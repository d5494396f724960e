"""Seats through the typed contracts: silence, empty seats, the order of draws, tasks that end undrawn or
unattested, and which accounts are eligible.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest

from assay.errors import TooFewVerifiers
from assay.status import report
from assay.submitting import post
from protocol.beacon.bn254 import hints, round_message
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import NEVER, Offer, TaskStatus
from protocol.node.party.eligible import Eligible, eligible, least_eligible, least_share
from protocol.node.words import duration
from protocol.tasks.task import ESCROW_DRAWS
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first, signature
from tests.chain.trees import fund, submitted, terms

pytestmark = pytest.mark.chain

PRICE = 91 * TOKEN + 1
"""Odd, so that halving it shows the rounding."""
UNIT = DEVNET.stake_unit


class Scene:
    """A submitter, a solver, and verifiers with one unit of stake each."""

    def __init__(self, chain: Devnet, connected: Connect, verifiers: int = 1) -> None:
        self.chain = chain
        self.submitter, self.solver = connected(1), connected(2)
        self.verifiers = [connected(3 + i) for i in range(verifiers)]
        for party in (self.submitter, self.solver):
            fund(party, 2000)
        for party in self.verifiers:
            fund(party, 100)
            party.audit.register(0, ANYTHING)

    def free(self, party: Client) -> int:
        """A party's free tokens in the vault."""
        return party.vault.free(party.address)

    def submitted(self, **changes: object) -> int:
        """Post a task and submit its run; returns the task's id. `changes` override its terms."""
        return submitted(self.chain, self.submitter, self.solver, PRICE, **changes)

    def draw(self) -> None:
        """Execute the queue's first draw. The solver does it, so no verifier earns the draw fee."""
        draw_first(self.solver, self.chain)

    def past(self, time: int) -> None:
        """Advance the chain's clock past `time`."""
        self.chain.skip(max(0, time - self.solver.now()) + 1)


def test_a_silent_account_pays_for_the_next_draw_and_sits_out(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=1)
    (silent,) = scene.verifiers
    task = scene.submitted()
    scene.draw()
    audit = silent.audit.audit(task)
    with pytest.raises(Reverted, match="TooEarly"):
        scene.solver.audit.redraw(task)
    scene.past(audit.until)
    with pytest.raises(Reverted, match="TooLate"):
        silent.audit.attest(task, 0, bytes(32), bytes(32))
    scene.solver.audit.redraw(task)
    suspended = silent.audit.registration(silent.address)
    assert suspended is not None
    assert suspended.suspended
    assert suspended.is_bound
    penalty = terms().seat_fee + DEVNET.draw_fee
    assert silent.vault.lock_of(suspended.lock).remaining == UNIT - penalty
    assert silent.vault.burned() == terms().seat_fee
    again = silent.audit.first_draw()
    assert again is not None
    assert (again.task, again.seats) == (task, 1)
    assert silent.vault.lock_of(again.purse).remaining == DEVNET.draw_fee
    assert scene.solver.market.task(task).challenge_until == NEVER
    assert eligible(silent, terms()).accounts == ()

    # Nobody else is registered, so the seat stays empty; the drawer gets the silent account's fee.
    before = scene.free(scene.solver)
    scene.draw()
    assert scene.free(scene.solver) == before + DEVNET.draw_fee
    (seat,) = silent.audit.seats(task)
    assert seat.is_empty
    assert not seat.attested
    assert silent.audit.audit(task).seed == audit.seed
    assert (silent.audit.audit(task).draws, silent.audit.audit(task).escrow_draws) == (2, 1)

    silent.audit.resume()
    resumed = silent.audit.registration(silent.address)
    assert resumed is not None
    assert not resumed.suspended
    assert not resumed.is_bound
    assert silent.vault.lock_of(resumed.lock).remaining == UNIT
    assert eligible(silent, terms()).accounts == (silent.address,)
    scene.past(seat.until)
    scene.solver.audit.redraw(task)
    scene.draw()
    (seat,) = silent.audit.seats(task)
    assert seat.account == silent.address
    assert scene.solver.audit.audit(task).escrow_draws == 2
    silent.audit.attest(task, 0, bytes(32), bytes(32))
    scene.past(scene.solver.market.task(task).challenge_until)
    scene.solver.market.settle(task)
    assert scene.solver.market.task(task).status is TaskStatus.SETTLED
    silent.audit.release(task, 0)
    released = silent.audit.registration(silent.address)
    assert released is not None
    assert not released.is_bound
    assert silent.audit.seats(task)[0].released


def test_the_status_tells_of_seats_and_of_draws_that_wait(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=1)
    (verifier,) = scene.verifiers
    task = scene.submitted(verifiers=2, segments_per_verifier=4, seat_lock=9 * TOKEN)

    def told() -> list[str]:
        (found,) = report(scene.submitter, [task])
        return [line for line in found.lines() if re.search("seat|draw", line)]

    waiting = "  a draw waits for round {} of the beacon, and for the draws before it"
    assert told() == [waiting.format(scene.solver.audit.audit(task).round)]
    scene.draw()
    seats = verifier.audit.seats(task)
    lines = told()
    for seat in seats:
        who = "nobody found" if seat.is_empty else verifier.address
        segments = ", ".join(map(str, verifier.audit.segments(task, seat.number)))
        left = seat.until - scene.solver.now()
        assert (
            lines[seat.number] == f"  seat {seat.number}: {who}, segments {segments}; {duration(left)} left"
        )
    (own,) = (seat.number for seat in seats if not seat.is_empty)
    verifier.audit.attest(task, own, bytes(32), bytes(32))
    scene.past(scene.solver.audit.audit(task).until)
    assert told()[own].endswith("; attested")
    assert told()[1 - own].endswith("; to be drawn again")
    scene.solver.audit.redraw(task)
    assert told()[0] == waiting.format(scene.solver.audit.audit(task).round)


def test_a_seat_that_nobody_fills_voids_the_task(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=1)
    (verifier,) = scene.verifiers
    # The stall period is long enough for all eight draws.
    task = scene.submitted(verifiers=2, attest_period=5, challenge_period=20)
    for draws in range(1, ESCROW_DRAWS + 1):
        scene.draw()
        audit = scene.solver.audit.audit(task)
        assert (audit.draws, audit.escrow_draws) == (draws, draws)
        if draws == 1:
            (own,) = (seat for seat in verifier.audit.seats(task) if not seat.is_empty)
            verifier.audit.attest(task, own.number, bytes(32), bytes(32))
        if draws < ESCROW_DRAWS:
            scene.past(audit.until)
            scene.solver.audit.redraw(task)
    scene.past(audit.until)
    with pytest.raises(Reverted, match="NoDrawsLeft"):
        scene.solver.audit.redraw(task)
    scene.past(scene.solver.market.task(task).challenge_until)
    with pytest.raises(Reverted, match="NotAudited"):
        scene.solver.market.settle(task)
    before = scene.free(verifier)
    scene.solver.market.void(task)
    assert scene.solver.market.task(task).status is TaskStatus.VOID
    assert scene.free(verifier) == before + terms().seat_fee
    assert scene.free(scene.solver) == 2000 * TOKEN + ESCROW_DRAWS * DEVNET.draw_fee
    cost = terms().seat_fee + ESCROW_DRAWS * DEVNET.draw_fee
    assert scene.free(scene.submitter) == 2000 * TOKEN - cost


def test_a_task_that_is_never_drawn_ends_unpaid_and_its_draw_is_paid_later(
    chain: Devnet, connected: Connect
) -> None:
    scene = Scene(chain, connected, verifiers=1)
    task = scene.submitted(training_period=60, clock=7, replay_allowance=1)
    round_ = scene.solver.audit.audit(task).round
    with pytest.raises(Reverted, match="TooEarly"):
        scene.solver.market.stall(task)
    scene.past(scene.solver.deployment.beacon.time_of(round_) + DEVNET.stall_period)
    scene.solver.market.stall(task)
    view = scene.solver.market.task(task)
    assert view.status is TaskStatus.UNPAID
    assert view.status.can_be_challenged
    assert not view.status.is_over
    assert view.challenge_until == scene.solver.now() + 2 * 60 + 2 * (7 + 1)
    with pytest.raises(Reverted, match="TooEarly"):
        scene.solver.market.close_stalled(task)
    scene.past(view.challenge_until)
    scene.solver.market.close_stalled(task)
    assert scene.solver.market.task(task).status is TaskStatus.VOID
    assert scene.free(scene.solver) == 2000 * TOKEN + PRICE // 2
    # The escrow keeps the fee of the draw that it owes.
    assert scene.free(scene.submitter) == 2000 * TOKEN - PRICE // 2 - DEVNET.draw_fee
    scene.draw()
    assert scene.free(scene.solver) == 2000 * TOKEN + PRICE // 2 + DEVNET.draw_fee
    (verifier,) = scene.verifiers
    found = verifier.audit.registration(verifier.address)
    assert found is not None
    assert found.free_since == scene.solver.now()


def test_a_task_whose_seats_stay_silent_ends_unpaid(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=2)
    task = scene.submitted(verifiers=2, training_period=60, clock=7)
    scene.draw()
    honest, silent = scene.verifiers
    (own,) = (seat for seat in honest.audit.seats(task) if seat.account == honest.address)
    honest.audit.attest(task, own.number, bytes(32), bytes(32))
    scene.past(scene.solver.audit.audit(task).drawn_at + DEVNET.stall_period)
    silent.market.stall(task)
    scene.past(scene.solver.market.task(task).challenge_until)
    silent.market.close_stalled(task)
    assert scene.solver.market.task(task).status is TaskStatus.VOID
    assert scene.free(honest) == 100 * TOKEN - UNIT + terms().seat_fee
    assert scene.free(silent) == 100 * TOKEN - UNIT
    assert scene.free(scene.solver) == 2000 * TOKEN + DEVNET.draw_fee
    assert scene.free(scene.submitter) == 2000 * TOKEN - terms().seat_fee - DEVNET.draw_fee


def test_draws_go_in_the_queues_order_and_take_the_rounds_signature_alone(
    chain: Devnet, connected: Connect
) -> None:
    scene = Scene(chain, connected, verifiers=2)
    first, second = scene.submitted(), scene.submitted()
    audit = scene.solver.audit
    entry = audit.first_draw()
    assert entry is not None
    assert entry.task == first
    good = signature(entry.round), hints(round_message(entry.round))
    later = signature(entry.round + 1), hints(round_message(entry.round + 1))
    with pytest.raises(Reverted, match="NotFirst"):
        audit.draw(second, *good)
    with pytest.raises(Reverted, match="NotSigned"):
        audit.draw(first, later[0], good[1])
    with pytest.raises(Reverted, match="WrongHint"):
        audit.draw(first, good[0], later[1])
    with pytest.raises(Reverted, match="SignatureLength"):
        audit.draw(first, good[0][:-1], good[1])
    assert audit.first_draw() == entry
    audit.draw(first, *good)
    scene.draw()
    assert audit.first_draw() is None
    (one,), (other,) = audit.seats(first), audit.seats(second)
    assert {one.account, other.account} == {verifier.address for verifier in scene.verifiers}


def test_three_accounts_a_seat_are_wanted_where_money_is_real() -> None:
    assert least_eligible(DEVELOPMENT_CHAIN, verifiers=3) == 3
    assert least_eligible(1, verifiers=3) == 9
    assert least_eligible(DEVELOPMENT_CHAIN, verifiers=2, jurors=3) == 5
    assert least_eligible(1, verifiers=3, jurors=31) == 102
    assert (least_share(DEVELOPMENT_CHAIN), least_share(1)) == (0, 0.5)


def test_a_task_with_too_few_verifiers_is_not_posted(connected: Connect) -> None:
    submitter, able, unable = connected(1), connected(3), connected(4)
    for client in (submitter, able, unable):
        fund(client, 2000)
    able.audit.register(0, ANYTHING)
    unable.audit.register(0, replace(ANYTHING, state_bytes=0))
    with pytest.raises(TooFewVerifiers, match=r"expected at least 2 registered accounts .* got 1"):
        post(submitter, terms(), signature, least=2)
    assert submitter.market.tasks() == 0
    assert post(submitter, terms(), signature, least=1) == 1


JUST = Offer(
    speed=terms().least_speed,
    state_bytes=terms().state_bytes,
    lock=terms().seat_lock,
    fee=terms().seat_fee * 10**9 // terms().seat_operations,
    seat_fee=terms().least_fee,
    period=terms().seat_period,
)
"""An offer that only just satisfies `terms()`. Its account can be drawn for a seat of a task with these
terms, but not if the task asks for more or pays less.
"""


def test_the_accounts_that_are_eligible_are_those_that_are_drawn(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=0)
    unable = [connected(index) for index in range(3, 9)]
    offers = [
        replace(JUST, speed=JUST.speed - 1),
        replace(JUST, state_bytes=JUST.state_bytes - 1),
        replace(JUST, lock=JUST.lock - 1),
        replace(JUST, fee=JUST.fee + 1),
        replace(JUST, seat_fee=JUST.seat_fee + 1),
        replace(JUST, period=JUST.period - 1),
    ]
    for client, offer in zip(unable, offers, strict=True):
        fund(client, 100)
        client.audit.register(0, offer)
    found = eligible(scene.solver, terms())
    assert found == Eligible((), 0, 6, {field.name: 1 for field in fields(Offer)})
    task = scene.submitted()
    scene.draw()
    assert [seat.is_empty for seat in scene.solver.audit.seats(task)] == [True]
    for client in unable:
        client.audit.resign()

    able = connected(9)
    fund(able, 100)
    able.audit.register(0, JUST)
    assert eligible(scene.solver, terms()).accounts == (able.address,)
    assert eligible(scene.solver, terms(seat_lock=UNIT + 1)) == Eligible((), 0, 1, {"lock": 1, "stake": 1})
    larger = connected(10)
    fund(larger, 100)
    larger.audit.register(2, replace(JUST, seat_fee=JUST.seat_fee + 1))
    found = eligible(scene.solver, terms())
    assert (found, found.share) == (Eligible((able.address,), 1, 5, {"seat_fee": 1}), 0.2)
    task = scene.submitted()
    scene.draw()
    assert [seat.account for seat in scene.solver.audit.seats(task)] == [able.address]
    able.audit.resign()
    assert eligible(scene.solver, terms()).accounts == ()
