"""An honest solver that is accused while it is busy, or of much at once: it must never lose on the clock.

Issue F, rows 5 and 6. At fd6f56d the solver answered once a round in the thread that trained, one move of each game and
one receipt after the other, with the roots of two segments kept: false accusers had its stake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.execution.replay import Executor, HonestExecutor, Work
from protocol.program.execute import Interpreter
from protocol.program.step import State
from solver.strategy import Strategy
from tests.attacks.false_games import NODES, FalseGames, honest_run
from tests.chain.solver_stage import Solver, Stage, stage, submitted
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain

MOST_BLOCKS = 3
"""That the 16 reveals of a demand may take."""


class Slow(HonestExecutor):
    """A machine on which a step takes `seconds`."""

    seconds = 0.0

    def step(self, state: State, number: int, /) -> State:
        """The next state, late."""
        sleep(self.seconds)
        return super().step(state, number)


def slow(seconds: Callable[[int], float]) -> Strategy:
    """An honest solver whose steps take so long, by task."""

    def make(work: Work) -> Executor:
        made = Slow(work.program, work.fixed, Interpreter(work.kernels))
        made.seconds = seconds(work.task)
        return made

    return Strategy(executor=make)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as made:
        yield made


def accused(scene: Stage, segments: int, segment_steps: int, **terms: int) -> FalseGames:
    """A task that the solver has handed in, and an account with bonds for games on it."""
    task = scene.sold(segments=segments, segment_steps=segment_steps, **terms)
    scene.until(task, submitted)
    accuser = scene.client("dev:2")
    accuser.fund(5_000 * TOKEN)
    return FalseGames(accuser, task, honest_run(segments, segment_steps))


def test_a_challenge_is_answered_while_another_task_trains_a_long_segment(scene: Stage) -> None:
    """Row 5: a segment of the second task takes a minute, the clock of the first is 10 s."""
    solver = Solver(scene, slow(lambda task: 0.2 if task == 2 else 0.0), once=False)
    games = accused(scene, tiny.SEGMENTS, tiny.STEPS, solver_clock=10)
    try:
        busy = scene.sold(segment_steps=300)
        assert (
            scene.until(busy, lambda view: view.status is TaskStatus.TRAINING).bidder == solver.client.address
        )
        scene.until(
            busy, lambda _view: solver.node.context.metrics.steps._value.get() > tiny.SEGMENTS * tiny.STEPS
        )
        game = games.open(1)
        assert games.until_convicted_or([game], "is_expanded", [1]), "slashed while it trained"
        assert scene.submitter.market.task(games.task).status is TaskStatus.SUBMITTED
    finally:
        solver.close()
        games.client.close()


def test_sixteen_nodes_are_revealed_within_three_blocks_of_a_short_clock(scene: Stage) -> None:
    """Row 6: a demand of 16 nodes on a clock of 10 s."""
    solver = Solver(scene, once=False)
    games = accused(scene, NODES, 1, solver_clock=10)
    try:
        game = games.open_blind()
        games.demand_checkpoints(game)
        assert games.until_convicted_or([game], "is_answered"), "slashed with reveals missing"
        blocks = games.blocks_of_reveals(game)
        assert len(blocks) == NODES
        assert max(blocks) - min(blocks) < MOST_BLOCKS
    finally:
        solver.close()
        games.client.close()


def test_six_demands_at_once_are_answered_on_the_demos_clock(scene: Stage) -> None:
    """Row 6: six games, 96 nodes, a clock of 40 s."""
    solver = Solver(scene, once=False)
    games = accused(scene, NODES, 1, solver_clock=40)
    try:
        numbers = [games.open_blind() for _ in range(6)]
        for number in numbers:
            games.demand_checkpoints(number)
        assert games.until_convicted_or(numbers, "is_answered"), "slashed with reveals missing"
        for number in numbers:
            blocks = games.blocks_of_reveals(number)
            assert len(blocks) == NODES
            assert max(blocks) - min(blocks) < MOST_BLOCKS
    finally:
        solver.close()
        games.client.close()


def test_games_in_four_segments_replay_each_of_them_once(scene: Stage) -> None:
    """Row 6: a replay of a segment takes a second; four of them are asked for 16 steps each."""
    segments = [1, 2, 3, 4]
    solver = Solver(scene, slow(lambda _task: 1 / NODES), once=False)
    games = accused(scene, len(segments), NODES - 1, solver_clock=20)
    try:
        numbers = [games.open(segment) for segment in segments]
        assert games.until_convicted_or(numbers, "is_expanded", segments), "slashed without its step trees"
        for number, segment in zip(numbers, segments, strict=True):
            games.demand_steps(number, segment)
        assert games.until_convicted_or(numbers, "is_answered"), "slashed with reveals missing"
    finally:
        solver.close()
        games.client.close()
