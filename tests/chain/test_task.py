"""A task through the typed contracts, from posting to settlement, and what the contracts refuse."""

from __future__ import annotations

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.errors import AccountError, Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import NEVER, NOBODY, Registration, Seat, TaskStatus
from protocol.commitments import segment_tree
from protocol.tasks.draws import seed_of, segments_of
from protocol.tasks.task import Terms
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first, word
from tests.chain.trees import ROOTS, SEGMENTS, TREE, fund, terms

pytestmark = pytest.mark.chain


def test_a_task_goes_its_whole_way_and_every_token_is_accounted_for(
    chain: Devnet, connected: Connect
) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    assert verifier.audit.registration(verifier.address) is None
    verifier.audit.register(1, ANYTHING)
    registered = verifier.audit.registration(verifier.address)
    assert registered == Registration(
        verifier.address, 0, chain.connection.block().time, 1, False, ANYTHING, 1
    )
    assert verifier.audit.registered() == 1
    assert verifier.vault.lock_of(registered.lock).remaining == 2 * DEVNET.stake_unit

    posted = terms()
    task, _ = submitter.market.post(posted)
    assert submitter.market.terms(task) == posted
    view = submitter.market.task(task)
    assert (view.status, view.bidder, view.submitter) == (TaskStatus.BIDDING, NOBODY, submitter.address)
    assert submitter.vault.lock_of(view.escrow).remaining == posted.escrow(DEVNET.draw_fee)

    solver.market.bid(task, 90 * TOKEN)
    assert solver.vault.lock_of(solver.market.task(task).stake).remaining == posted.delay_penalty
    chain.skip(posted.bidding_period + 1)
    solver.market.assign(task)
    first = segment_tree(ROOTS[:3])
    solver.market.progress(task, first.root, 3, first.inclusion_path(0), [])
    assert solver.audit.first_draw() is None
    solver.market.submit(
        task, TREE.root, [], TREE.consistency_proof(3), ROOTS[SEGMENTS], TREE.inclusion_path(SEGMENTS)
    )
    view = solver.market.task(task)
    assert (view.status, view.root, view.size) == (TaskStatus.SUBMITTED, TREE.root, SEGMENTS + 1)
    assert (view.result, view.challenge_until, view.owes_draw) == (ROOTS[SEGMENTS], NEVER, True)
    assert solver.vault.lock_of(view.stake).remaining == posted.stake

    asked = solver.audit.audit(task)
    assert (asked.pool, asked.drawn_at, asked.pending) == ((0, 1) + 14 * (0,), 0, True)
    assert verifier.audit.seats(task) == []
    drawn = draw_first(solver, chain)
    assert (drawn.task, drawn.seats, drawn.round, drawn.purse) == (task, 1, asked.round, 0)
    audit, now = solver.audit.audit(task), chain.connection.block().time
    address = solver.deployment.addresses.audit
    assert audit.seed == seed_of(chain.chain_id, address, task, TREE.root, 1, word(drawn.round))
    assert (audit.drawn_at, audit.until, audit.draws, audit.pending) == (
        now,
        now + posted.attest_period,
        1,
        False,
    )
    assert verifier.audit.seats(task) == [Seat(0, verifier.address, 1, audit.until, False, False, False)]
    segments = verifier.audit.segments(task, 0)
    assert segments == segments_of(audit.seed, 0, SEGMENTS, posted.segments_per_verifier)
    bound = verifier.audit.registration(verifier.address)
    assert bound is not None
    assert bound.is_bound
    view = solver.market.task(task)
    assert (view.challenge_until, view.owes_draw) == (now + posted.challenge_period, False)

    verifier.audit.attest(task, 0, segment_tree(ROOTS[1:3]).root, bytes(32))
    assert verifier.audit.audit(task).attested == 1
    assert verifier.audit.seats(task)[0].attested
    chain.skip(posted.challenge_period + 1)
    free = {party.address: party.vault.free(party.address) for party in (submitter, solver, verifier)}
    receipt = submitter.market.settle(task)
    paid = submitter.market.event(receipt, "Settled").arguments["paid"]
    assert paid == 90 * TOKEN
    assert submitter.market.task(task).status is TaskStatus.SETTLED
    assert solver.vault.free(solver.address) - free[solver.address] == 90 * TOKEN + posted.stake
    assert verifier.vault.free(verifier.address) - free[verifier.address] == posted.seat_fee
    everything = sum(party.vault.free(party.address) for party in (submitter, solver, verifier))
    assert everything == 6000 * TOKEN - 2 * DEVNET.stake_unit


def test_an_account_that_resigns_leaves_with_its_stake(chain: Devnet, connected: Connect) -> None:
    verifier = connected(3)
    fund(verifier, 100)
    verifier.audit.register(0, ANYTHING)
    with pytest.raises(Reverted, match="NotResigned"):
        verifier.audit.leave()
    verifier.audit.resign()
    resigned = verifier.audit.registration(verifier.address)
    assert resigned is not None
    assert resigned.resigned_at == chain.connection.block().time
    assert verifier.audit.registered() == 0
    with pytest.raises(Reverted, match="TooEarly"):
        verifier.audit.leave()
    chain.skip(DEVNET.unbonding_period + 1)
    verifier.audit.leave()
    assert verifier.audit.registration(verifier.address) is None
    assert verifier.vault.free(verifier.address) == 100 * TOKEN
    verifier.audit.register(2, ANYTHING)


def test_a_late_solver_pays_half_of_the_penalty_to_the_submitter(chain: Devnet, connected: Connect) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(0, ANYTHING)
    posted = terms(delay_penalty=9)
    task, _ = submitter.market.post(posted)
    solver.market.bid(task, 1)
    chain.skip(posted.bidding_period + 1)
    solver.market.assign(task)
    chain.skip(posted.training_period)
    verifier.market.expire(task)
    assert submitter.market.task(task).status is TaskStatus.REFUNDED
    assert submitter.vault.free(submitter.address) == 2000 * TOKEN + 4
    assert solver.vault.free(solver.address) == 2000 * TOKEN - 9
    assert solver.vault.burned() == 5


def test_refusals_carry_the_contracts_own_errors(connected: Connect) -> None:
    client = connected(1)
    with pytest.raises(Reverted) as unknown:
        client.market.bid(7, 1)
    assert (unknown.value.name, unknown.value.arguments) == ("UnknownTask", {"task": 7})
    assert "TaskMarket.bid" in str(unknown.value)
    assert "UnknownTask(task=7)" in str(unknown.value)
    with pytest.raises(Reverted) as poor:
        client.vault.withdraw(5)
    assert poor.value.name == "NotEnoughFree"
    assert poor.value.arguments["needed"] == 5
    with pytest.raises(Reverted) as token:
        client.vault.deposit(5)
    assert token.value.name == "ERC20InsufficientAllowance"
    with pytest.raises(Reverted) as read:
        client.market.task(9)
    assert read.value.name == "UnknownTask"


def test_bounds_of_the_deployment_are_the_contracts_to_judge(connected: Connect) -> None:
    submitter, verifier = connected(1), connected(3)
    fund(submitter, 2000)
    fund(verifier, 100)
    verifier.audit.register(0, ANYTHING)
    with pytest.raises(Reverted) as short:
        submitter.market.post(terms(bidding_period=1, extension=1))
    assert short.value.arguments["field"] == "biddingPeriod"
    with pytest.raises(Reverted) as small:
        submitter.market.post(terms(seat_lock=terms().seat_fee + DEVNET.draw_fee - 1))
    assert small.value.arguments["field"] == "seatLock"


def test_without_an_account_one_can_only_read(client: Client) -> None:
    reader = Client(client.connection, client.deployment, None)
    assert reader.market.tasks() == 0
    with pytest.raises(AccountError, match="connect with an account"):
        reader.market.assign(1)


def test_terms_pass_through_the_abi_unchanged() -> None:
    posted = terms()
    assert Terms.from_abi(posted.abi()) == posted
