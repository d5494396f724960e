"""Beacon rounds on a real chain: parties execute draws in order, and show that the beacon is alive."""

from __future__ import annotations

import pytest

from protocol.beacon.errors import NoRelay
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.node.party.rounds import ALIVE_SECONDS, due_draw, execute_first_draw, is_shown, show_round
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, signature
from tests.chain.trees import fund, submitted, terms

pytestmark = pytest.mark.chain


def no_signature(number: int) -> bytes:
    raise NoRelay(number, [])


def test_the_queues_first_draws_are_executed_when_their_rounds_are_published(
    chain: Devnet, connected: Connect
) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 4000)
    verifier.audit.register(0, ANYTHING)
    assert execute_first_draw(verifier, no_signature) is None, "no draw, and no relay is asked"
    tasks = [submitted(chain, submitter, solver, TOKEN)]
    first = verifier.audit.first_draw()
    assert first is not None
    assert verifier.now() < first.round == verifier.deployment.beacon.time_of(first.round)
    assert due_draw(verifier) is None
    assert execute_first_draw(verifier, no_signature) is None
    published = first.round
    for wait, own, due in ((0, tasks[0], first), (4, 99, None), (5, 99, first)):
        chain.next_block_at(published + wait)
        chain.mine()
        assert due_draw(verifier, own) == due, "its own party comes first"

    tasks.append(submitted(chain, submitter, solver, TOKEN))
    chain.skip(60)
    assert due_draw(verifier) == first
    with pytest.raises(NoRelay):
        execute_first_draw(verifier, no_signature)
    drawn = [execute_first_draw(verifier, signature) for _ in range(3)]
    assert [None if one is None else one[0].task for one in drawn] == [*tasks, None]


def test_a_draw_that_another_party_executes_meanwhile_is_no_error(chain: Devnet, connected: Connect) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(0, ANYTHING)
    task = submitted(chain, submitter, solver, TOKEN)
    chain.skip(60)

    def slow(number: int) -> bytes:
        assert execute_first_draw(solver, signature) is not None
        return signature(number)

    assert execute_first_draw(verifier, slow) is None
    assert verifier.audit.audit(task).drawn_at > 0


def test_a_draw_that_the_board_refuses_is_an_error(chain: Devnet, connected: Connect) -> None:
    submitter, solver, verifier = connected(1), connected(2), connected(3)
    for party in (submitter, solver, verifier):
        fund(party, 2000)
    verifier.audit.register(0, ANYTHING)
    submitted(chain, submitter, solver, TOKEN)
    chain.skip(60)
    with pytest.raises(Reverted, match="NotSigned"):
        execute_first_draw(verifier, lambda number: signature(number + 1))


def test_a_round_is_shown_when_the_last_one_is_half_a_day_old(chain: Devnet, connected: Connect) -> None:
    submitter, verifier = connected(1), connected(3)
    for party in (submitter, verifier):
        fund(party, 2000)
    verifier.audit.register(0, ANYTHING)
    latest = submitter.beacon.latest()
    assert latest > 0
    assert show_round(submitter, no_signature) is None, "it is fresh, and no relay is asked"
    chain.skip(ALIVE_SECONDS // 2 + 1)
    submitter.market.post(terms())
    newest = submitter.deployment.beacon.round_at(submitter.now())
    assert show_round(submitter, signature) is not None
    assert submitter.beacon.latest() == newest > latest

    chain.skip(ALIVE_SECONDS + 2)
    with pytest.raises(Reverted, match="StaleBeacon"):
        submitter.market.post(terms())

    def slow(number: int) -> bytes:
        assert show_round(verifier, signature) is not None
        return signature(number)

    assert show_round(submitter, slow) is None, "another party was faster"
    assert is_shown(submitter, 60, submitter.now())
    submitter.market.post(terms())
