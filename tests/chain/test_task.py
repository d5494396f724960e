"""A task through the typed contracts: posted, bid for, trained, drawn, attested, settled; and what the contracts
refuse.
"""

from __future__ import annotations

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.errors import AccountError, Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from protocol.commitments import segment_tree
from protocol.tasks.task import Terms
from tests.chain.conftest import Connect
from tests.chain.trees import ROOTS, SEGMENTS, TREE, fund, terms

pytestmark = pytest.mark.chain


def test_a_task_goes_its_whole_way_and_every_token_is_accounted_for(
    chain: Devnet, connected: Connect
) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(3)
    assert (verifier.audit.live_slots(), verifier.audit.live_verifiers()) == (3, 1)

    posted = terms()
    task, _ = submitter.market.post(posted)
    assert submitter.market.terms(task) == posted
    view = submitter.market.task(task)
    assert (view.status, view.bidder, view.submitter) == (TaskStatus.BIDDING, NOBODY, submitter.address)
    assert submitter.vault.lock_of(view.escrow).remaining == posted.escrow(DEVNET.draw_fee)

    solver.market.bid(task, 90 * TOKEN)
    chain.skip(posted.bidding_period + 1)
    solver.market.assign(task)
    first = segment_tree(ROOTS[:3])
    solver.market.progress(task, first.root, 3, first.inclusion_path(0), [])
    solver.market.submit(
        task, TREE.root, [], TREE.consistency_proof(3), ROOTS[SEGMENTS], TREE.inclusion_path(SEGMENTS)
    )
    view = solver.market.task(task)
    assert (view.status, view.root, view.size) == (TaskStatus.SUBMITTED, TREE.root, SEGMENTS + 1)
    assert view.result == ROOTS[SEGMENTS]

    chain.mine(max(0, view.draw_block - chain.connection.block().number) + 1)
    solver.audit.draw(task, view.draw_block)
    duties = verifier.audit.duties(task)
    assert {duty.verifier for duty in duties} == {verifier.address}
    assert SEGMENTS in {duty.segment for duty in duties}
    assert not verifier.audit.satisfied(task)
    for duty in duties:
        verifier.audit.attest(task, duty.number, ROOTS[duty.segment])
    assert verifier.audit.satisfied(task)

    chain.skip(posted.challenge_period + 1)
    free = {party.address: party.vault.free(party.address) for party in (submitter, solver, verifier)}
    receipt = submitter.market.settle(task)
    paid = submitter.market.event(receipt, "Settled").arguments["paid"]
    assert paid == 90 * TOKEN
    assert submitter.market.task(task).status is TaskStatus.SETTLED
    assert solver.vault.free(solver.address) - free[solver.address] == 90 * TOKEN + posted.stake
    assert verifier.vault.free(verifier.address) - free[verifier.address] == len(duties) * posted.audit_fee
    everything = sum(party.vault.free(party.address) for party in (submitter, solver, verifier))
    assert everything == 6000 * TOKEN - 3 * DEVNET.stake_unit


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
    verifier.audit.register(1)
    with pytest.raises(Reverted) as short:
        submitter.market.post(terms(bidding_period=1, extension=1))
    assert short.value.arguments["field"] == "biddingPeriod"


def test_without_an_account_one_can_only_read(client: Client) -> None:
    reader = Client(client.connection, client.deployment, None)
    assert reader.market.tasks() == 0
    with pytest.raises(AccountError, match="connect with an account"):
        reader.market.assign(1)


def test_terms_pass_through_the_abi_unchanged() -> None:
    posted = terms()
    assert Terms.from_abi(posted.abi()) == posted
