"""A transaction of one task is not included in any block. The solver goes on with its other tasks.

At commit 7ebdc6a the loop waited five minutes for the receipt of a draw. A task that was won
meanwhile was not trained, although its deadline approached.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protocol.chain.views import TaskStatus
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.solver_stage import PARAMETERS, Solver, stage, submitted
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain


def test_a_draw_that_no_block_takes_holds_no_other_task(tmp_path: Path) -> None:
    """The node drops the solver's transactions. Meanwhile the submitter assigns another task to the solver,
    which trains it.
    """
    late = replace(PARAMETERS, draw_delay=100)  # no draw before the node drops transactions
    with stage(tmp_path, mixed=False, parameters=late) as scene, RpcProxy(scene.devnet.url) as proxy:
        direct, scene.url = scene.url, proxy.url
        solver = Solver(scene, once=False)
        scene.url = direct
        try:
            waiting = scene.sold()
            scene.until(waiting, submitted)
            won = scene.post()
            scene.until(won, lambda view: view.bidder == solver.client.address)
            proxy.faults.lose_broadcasts = True
            sent = proxy.asked["eth_sendRawTransaction"]
            scene.skip_to(scene.submitter.audit.audit(waiting).round)
            scene.until(waiting, lambda _view: proxy.asked["eth_sendRawTransaction"] > sent)
            scene.end_bidding(won)
            scene.submitter.market.assign(won)
            catalog = solver.node.context.catalog

            def trained() -> bool:
                run_store = catalog.run_store(won)
                return run_store is not None and run_store.size == tiny.SEGMENTS + 1

            view = scene.until(won, lambda _view: trained())
            assert (view.status, view.size) == (TaskStatus.TRAINING, 0), "none of it was mined"
            assert scene.submitter.audit.audit(waiting).drawn_at == 0
            proxy.faults.lose_broadcasts = False
            scene.until(won, submitted)
            scene.until_drawn(waiting)
        finally:
            solver.close()
