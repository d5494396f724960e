"""Bidding, in which late bids extend the period: contract, client and status agree, and a running solver bids
against a rival that waits until the last seconds.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from assay.status import report
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.words import tokens
from protocol.tasks.bidding import least_undercut, longest_overtime
from solver.database import Stage as TaskStage
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING
from tests.chain.solver_stage import Solver, Stage
from tests.chain.trees import fund, terms

pytestmark = pytest.mark.chain
EXTENSION = 60
FREE: dict[str, Any] = dict.fromkeys(("cost_per_hour", "watts", "capital_rate", "coin_price"), 0)
"""Settings of a solver whose only cost is the risk of being late. A chance r of being late costs r / (1 - r)
times the penalty of 5 tokens.
"""


def test_a_sniper_is_answered_down_to_the_floor(scene: Stage) -> None:
    solver = Solver(scene, once=False, **FREE, late_chance=8 / 9, margin=0.5)
    rival = scene.client("dev:3")
    rival.fund(2_000 * TOKEN)
    mine = solver.client.address
    try:
        task = scene.post(extension=EXTENSION)
        end = scene.until(task, lambda view: view.bidder == mine).bids_until
        scene.devnet.skip(end - 30 - scene.submitter.now())
        rival.market.bid(task, 80 * TOKEN)
        sniped = scene.submitter.market.task(task)
        assert sniped.bids_until > end
        answered = scene.until(task, lambda view: view.bidder == mine)
        step = least_undercut(80 * TOKEN, sniped.overtime // EXTENSION)
        assert answered.price == 80 * TOKEN - step
        scene.devnet.skip(answered.bids_until - 30 - scene.submitter.now())
        rival.market.bid(task, 60 * TOKEN)
        scene.until(task, lambda view: view.bidder == rival.address and view.overtime >= EXTENSION)
        while (row := solver.node.context.database.task(task)) is None or row.stage is not TaskStage.OUTBID:
            scene.until(task, lambda view: view.bidder == rival.address)
        assert "its floor is 60 tokens" in row.note
        last = scene.submitter.market.task(task)
        scene.devnet.skip(last.bids_until + 1 - scene.submitter.now())
        rival.market.assign(task)
        won = scene.submitter.market.task(task)
        assert (won.status, won.bidder, won.price) == (TaskStatus.TRAINING, rival.address, 60 * TOKEN)
        assert won.train_until == last.bids_until + 600
    finally:
        solver.close()
        rival.close()


def test_contract_client_and_status_agree_on_every_bid(chain: Devnet, connected: Connect) -> None:
    """Bids come at random times before the end, with random allowed prices. A price one unit above the limit
    is refused.
    """
    submitter, bidders = connected(1), [connected(2), connected(3)]
    for party in (submitter, *bidders):
        fund(party, 2000)
    bidders[0].audit.register(0, ANYTHING)
    posted = terms(bidding_period=1_000, extension=100)
    task, _ = submitter.market.post(posted)
    luck = Random(7)
    end = first = submitter.market.task(task).bids_until
    for number in range(40):
        (told,) = report(submitter, [task])
        if told.most_bid is None:
            break
        assert f"must be at most {tokens(told.most_bid, at_most=True)}" in "\n".join(told.lines())
        bidder, left = bidders[number % 2], end - submitter.now()
        chain.skip(left - min(left, luck.choice((20, 60, 150))))
        price = max(0, told.most_bid - luck.choice((0, 0, 1, told.most_bid // 10)))
        with pytest.raises(Reverted, match="BidTooHigh" if number else "price"):
            bidder.market.bid(task, told.most_bid + 1)
        mined = bidder.connection.block(bidder.market.bid(task, price).block).time
        end = max(end, mined + posted.extension)
        view = submitter.market.task(task)
        assert (view.price, view.bids_until, view.overtime) == (price, end, end - first)
    assert view.overtime > 5 * posted.extension, "every undercut up to 64 % was asked for"
    assert view.overtime < longest_overtime(posted.budget, posted.extension)
