"""Endpoints and bundle addresses on which Python's libraries raise unexpected errors.

The host in `https://xn--a/` is not a valid IDNA name. At commit fd6f56d, opening this address raised a
UnicodeError:

- A cheat announced this address as its endpoint. Every replay of an honest verifier crashed, and the cheat was paid.
- A stranger posted a task with this address for its bundle. `solver run` ended, again after every restart.

Now an address is parsed when it is read. One that cannot be opened means "not served", for that task only.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from protocol.chain.views import TaskStatus
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from tests.attacks.processes import Party, until
from tests.chain.solver_stage import Stage, mined_at_once, over

pytestmark = pytest.mark.chain

UNOPENABLE = ["https://xn--a/", "http://[v1.a]:8701", "https://a..b/" + "%zz", "http://127.0.0.1:1/\x1b[2J"]
"""Four addresses: with an invalid A-label; with an IPvFuture host; with an empty label and a broken percent
escape; with a terminal's escape sequence.
"""


def test_a_cheat_with_an_endpoint_that_cannot_be_opened_is_slashed(scene: Stage) -> None:
    """Before the fix, every replay of the verifier failed, and no game was opened."""
    scene.submitter.audit.resign()
    with ExitStack() as parties:
        with mined_at_once(scene):
            verifier = parties.enter_context(Party(scene, "verifier", "--once", "--whistleblow"))
            flags = ("--url", UNOPENABLE[0])
            cheat = parties.enter_context(Party(scene, "solver", *flags, adversary="far-weight"))
        assert scene.submitter.market.endpoint_of(cheat.address) == UNOPENABLE[0]
        task = scene.sold()
        until(lambda: scene.submitter.game.games() > 0, verifier, cheat)
        scene.devnet.connection.request("evm_setAutomine", True)  # from here on every move has its own block
        view = scene.until(task, over)
        game = scene.submitter.game.game(1)
        assert verifier.join() == ExitCode.FRAUD
    assert view.status is TaskStatus.SLASHED
    assert (game.verdict, game.segment, game.step) == (Verdict.SOLVER_FALSE, 2, 2)
    assert game.challenger == verifier.address


def test_bundles_that_cannot_be_opened_do_not_end_the_solver(scene: Stage) -> None:
    """Before the fix, `solver run` ended with exit code 1 and "internal error: InvalidCodepoint"."""
    with mined_at_once(scene):
        for address in UNOPENABLE:
            scene.post(bundle=address)
        good = scene.post(bidding_period=600)  # still open when the solver has started on a busy machine
        with Party(scene, "solver", "--once") as solver:
            until(lambda: scene.submitter.market.task(good).bidder == solver.address, solver)
            assert solver.ended is None
