"""Games: a verifier convicts a cheat; a solver defends itself against a false accuser, which fetches the
solver's data or demands it on the chain.

The wrong number is inside a call, so a game descends through the step's trace to the call's trace.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.view import Verdict
from protocol.node.addresses import Address
from protocol.node.reach import Reach
from protocol.program.step import StepProgram
from protocol.tasks.task import Terms
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.tiny import moves_a_half_far
from tests.campaign.parties import solver_beside, solver_under_test, verifier_beside, verifier_under_test
from tests.campaign.scenes.steps import drawn, handed_in, left_alone, settled
from tests.campaign.stages import Stage, Who
from tests.campaign.world import VERIFIER, World, address
from tests.unit.solver import tiny
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy, over_http

ACCUSER = 5
REWARD = 50 * TOKEN


def convicted(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of a task whose solver cheats but otherwise follows the rules. The verifier with the only
    seat is under test.
    """
    world.submitter.audit.resign()
    verifier_under_test(world, VERIFIER)
    solver_beside(world, SolverStrategy(executor=moves_a_half_far))
    world.begin()
    task = world.post_task(segments_per_verifier=tiny.SEGMENTS)
    handed_in(world, task)
    drawn(world, task)
    world.reach(lambda: world.party_said("different", task=task))
    yield Stage.COMMIT
    world.reach(lambda: bool(world.happened("Committed", task=task)))
    yield Stage.CHALLENGE
    world.reach(lambda: bool(world.happened("StepsPosted", task=task)))
    yield Stage.STEP
    world.reach(lambda: bool(world.happened("TracePosted", task=task)))
    yield Stage.CALL
    world.reach(lambda: len(world.happened("TracePosted", task=task)) > 1)
    yield Stage.JUDGE
    world.reach(lambda: world.view(task).status.is_over)
    assert world.view(task).status is TaskStatus.SLASHED, "a false segment with an honest seat on it"
    world.gains(address(VERIFIER), REWARD)
    world.reach(lambda: bool(world.happened("Compensated", task=task)))
    left_alone(world, task)


def accused(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of a false accusation. The solver, which is under test, serves the accuser. When the EVM
    agrees with the solver, the accuser has no move left.
    """
    task = _challenged(world, Strategy(executor=moves_a_half_far))
    yield Stage.ACCUSED
    world.reach(lambda: bool(world.happened("StepSelected", game=1)))
    yield Stage.TRACE
    world.reach(lambda: bool(world.happened("CallSelected", game=1)))
    yield Stage.CALL_TRACE
    world.reach(lambda: len(world.happened("TracePosted", task=task)) > 1)
    yield from _acquitted(world, task)


def unserved(world: World, _who: Who) -> Iterator[Stage]:
    """The stages of a false accusation by an accuser that fetches nothing: it demands on the chain what it
    needs.
    """
    task = _challenged(world, Strategy(executor=moves_a_half_far, provider=_nowhere))
    world.reach(lambda: bool(world.happened("Demanded", game=1)))
    yield Stage.REVEAL
    world.reach(lambda: len(world.happened("TracePosted", task=task)) > 1)
    yield from _acquitted(world, task)


def _challenged(world: World, accuser: Strategy) -> int:
    """Start the parties, post a task, and wait until the accuser has opened a game against the solver, which
    is honest and under test. Returns the task's id.
    """
    solver_under_test(world)
    verifier_beside(world, ACCUSER, strategy=accuser, honest=False, whistleblow=True, stake=0)
    world.begin()
    task = world.post_task()
    handed_in(world, task)
    world.reach(lambda: bool(world.happened("Challenged", task=task)))
    return task


def _acquitted(world: World, task: int) -> Iterator[Stage]:
    """The stages after the accuser's last move. The accuser's clock runs out; then the submitter, whose
    account has the seat, attests.
    """
    game = world.submitter.game
    world.skip_to(game.game(1).deadline)
    world.reach(lambda: game.game(1).verdict is not Verdict.NONE)
    assert game.game(1).verdict is Verdict.CHALLENGER_SILENT
    drawn(world, task)
    world.act(lambda: world.attest(task))
    yield from settled(world, task)


def _nowhere(
    _address: Address | None, task: int, program: StepProgram, terms: Terms, reach: Reach
) -> CheckpointProvider:
    return over_http(None, task, program, terms, reach)
