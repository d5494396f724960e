"""Which games a solver watches, and in which order it answers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, permutations
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.chain import game_view
from protocol.chain.receipts import Receipt
from protocol.dispute.view import Phase, Verdict
from protocol.execution.turns import Turns
from protocol.node.logs import get
from protocol.tasks import owed
from protocol.tasks.admission import Clocks, Engagement, Rates, Work, admission
from protocol.tasks.task import GAMES_AT_ONCE, INCLUSION_BLOCKS
from solver.context import Context
from solver.database import Stage
from solver.defence import Defence, by_deadline
from solver.metrics import Metrics
from solver.settings import SolverSettings
from tests.chain.trees import terms
from tests.unit.solver.simulated_games import Game, Machine, Task

NODES = 16


def test_the_game_with_the_least_time_left_is_answered_first_whatever_its_number() -> None:
    deadlines = {1: 200, 2: 300, 7: 100}
    assert by_deadline(deadlines, deadlines.__getitem__) == [7, 1, 2]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30)), min_size=1, max_size=5))
def test_every_answer_is_in_time_if_any_order_answers_all_in_time(games: list[tuple[int, int]]) -> None:
    """Jackson's rule. Each game is a pair: the seconds of its answer, and the seconds left on the solver's clock."""

    def in_time(order: Iterable[int]) -> bool:
        return all(now <= games[game][1] for game, now in zip(order, accumulate(games[k][0] for k in order)))

    orders = permutations(range(len(games)))
    assert in_time(by_deadline(range(len(games)), lambda game: games[game][1])) == any(map(in_time, orders))


ANSWER = st.tuples(st.integers(0, 5), st.integers(0, 40))
"""A pair: the seconds that the solver takes for an answer, and the seconds that the challenger takes before
it asks for that answer.
"""


@given(st.lists(st.lists(ANSWER, max_size=20), max_size=GAMES_AT_ONCE), st.integers(0, 3))
def test_no_clock_runs_out_whatever_is_asked_in_sixteen_games(
    asked: list[list[tuple[int, int]]], block: int
) -> None:
    """One machine answers all games, each within the time that the admission requires.

    Each answer takes up to a twentieth of a replay. The first answer of a game takes a whole replay in
    addition.
    """
    replay = 100
    one = terms(segment_steps=1, step_operations=replay, state_bytes=1)
    task = replace(owed.games("games", one, owed.Traces()), piece=Work())
    games = [[(replay + took, thought) for took, thought in game[:1]] + game[1:] for game in asked]
    inclusion = INCLUSION_BLOCKS * block
    refused = admission([replace(task, seconds=0)], Clocks(inclusion), Rates(1))
    assert refused is not None
    assert all(seconds <= refused.needed for seconds in play(games, inclusion))


def play(games: list[list[tuple[int, int]]], inclusion: int) -> list[int]:
    """The seconds that the solver's clock runs in each game. Among the games that wait for an answer, the
    solver always answers the one with the least time left.

    A game's clock runs from a question until the answer is mined. All games are opened at once.
    """
    time = 10**6
    spent, due = [0] * len(games), {k: game[0][1] for k, game in enumerate(games) if game}
    answered, now = [0] * len(games), 0
    while due:
        waiting = [k for k in due if due[k] <= now]
        if not waiting:
            now = min(due.values())
            continue
        game = by_deadline(waiting, lambda k: due[k] + time - spent[k])[0]
        now += games[game][answered[game]][0]
        spent[game] += now + inclusion - due.pop(game)
        answered[game] += 1
        if answered[game] < len(games[game]):
            due[game] = now + inclusion + games[game][answered[game]][1]
    return spent


def test_a_long_answer_makes_way_for_another_tasks_game_that_is_due_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While 100 steps of 1 s each are replayed, another game asks a question to be answered within 20 s."""
    long = Game(1, 0.0, [100.0], [0.0])
    quick = Game(2, 5.0, [1.0], [0.0])
    tasks = [
        Task(Engagement("long", Work(), 10_000.0), 1.0, (long,)),
        Task(Engagement("quick", Work(), 20.0), 1.0, (quick,)),
    ]
    assert Machine(tasks, Clocks(2.0, 0.5), trained=0.0, phase=0.0).play(monkeypatch) == []
    assert quick.spent <= 1 + 1 + 2, "a step that runs, its own, and two blocks"
    assert long.spent == 100 + 1 + 2


class Chain:
    """A stub of the chain. It holds games 1, 2, … on task 7, as one node shows them, and makes the context of
    a solver that reads them.
    """

    def __init__(self) -> None:
        self.counted = self.known = 0
        self.tasks: dict[int, int] = {}  # of games on another task than 7
        self.block = SimpleNamespace(number=100, hash="a100", parent="a99")
        self.forked = (0, "a")  # the first block of the present branch
        self.ended: set[int] = set()  # closed games
        self.stage = Stage.SUBMITTED
        self.closed = False
        self.replays = 0
        self.loaded = True
        self.moves = 0  # in each answer
        self.broken: set[int] = set()  # games whose answer fails
        self.read: list[int] = []  # games
        self.sent: list[tuple[int, int]] = []
        self.mining = True
        self.waits = False

    def game(self, number: int) -> SimpleNamespace:
        """The state of a game. If the node does not have the game yet, its task is 0."""
        self.read.append(number)
        return SimpleNamespace(
            game=number,
            task=self.tasks.get(number, 7) if number <= self.known else 0,
            deadline=-number,
            waits=self.waits,
            phase=self.phase(number),
            verdict=Verdict.NONE,
            depth=0,
            demands=0,
            demand_open=1,
        )

    def phase(self, number: int) -> Phase:
        """The phase of a game."""
        return Phase.CLOSED if self.closed or number in self.ended else Phase.SEGMENT

    @contextmanager
    def view(self) -> Iterator[SimpleNamespace]:
        """The newest block."""
        yield self.block

    def mine(self, branch: str = "a", forks: int = 0) -> None:
        """Add a block of `branch`. If `forks` is not 0, the newest `forks` blocks are first replaced by the
        same number of blocks of `branch`.
        """
        number = self.block.number + 1
        parent = self.block.hash if not forks else f"{branch}{number - 1}"
        self.block = SimpleNamespace(number=number, hash=f"{branch}{number}", parent=parent)
        self.forked = (number - forks, branch) if forks else self.forked

    def hash_of(self, number: int) -> SimpleNamespace:
        """A block of the present branch."""
        first, branch = self.forked
        return SimpleNamespace(hash=f"{branch if number >= first else 'a'}{number}")

    def replay(self) -> object:
        """Count a replay; returns a new run."""
        self.replays += 1
        return object()

    def defence(self, view: SimpleNamespace, _run: object) -> list[SimpleNamespace]:
        """A game's moves, named by game and number."""
        if view.number in self.broken:
            raise ZeroDivisionError
        return [
            SimpleNamespace(function="revealNode", note="", name=(view.number, k)) for k in range(self.moves)
        ]

    def send_moves(self, moves: list[SimpleNamespace], _head: object) -> list[SimpleNamespace]:
        """Put moves into the mempool."""
        self.sent += [move.name for move in moves]
        return moves

    def outcomes(self, sent: list[SimpleNamespace]) -> list[Receipt | None]:
        """A receipt for each move; None while no block is mined."""
        receipt = Receipt("0x", "revealNode", 1, "0x", True, 21_000, None, ())
        return [receipt if self.mining else None for _ in sent]

    @property
    def context(self) -> Context:
        """The context of a solver that holds task 7."""
        run_store = SimpleNamespace(program=SimpleNamespace(program=None, state_types=()), replay=self.replay)
        games = SimpleNamespace(
            games=lambda: self.counted, game=self.game, ahead=list, send_moves=self.send_moves
        )
        context = SimpleNamespace(
            client=SimpleNamespace(
                game=games,
                outcomes=self.outcomes,
                deployment=SimpleNamespace(block=0),
                connection=SimpleNamespace(
                    view=self.view, block=self.hash_of, chain=SimpleNamespace(reorg_depth=8)
                ),
            ),
            catalog=SimpleNamespace(run_store=lambda task: run_store if task == 7 and self.loaded else None),
            count=lambda *_what, **_about: None,
            database=SimpleNamespace(task=self.task, live=self.live),
            metrics=Metrics(),
            settings=SolverSettings(),
            turns=Turns(),
            strategy=SimpleNamespace(defence=self.defence),
            log=get("test"),
            seconds_each=lambda: 2.0,
        )
        return cast(Context, context)

    def live(self, *stages: Stage) -> list[int]:
        """Task 7, if its stage is among these."""
        return [7] if self.stage in stages else []

    def task(self, _task: int) -> SimpleNamespace:
        """The database row of task 7."""
        return SimpleNamespace(task=7, stage=self.stage)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    made = Chain()

    class Reader:
        """Reads a game in which the solver is to move. The game is closed once `made.closed` is set."""

        def __init__(self, _game: object, number: int, *_about: object) -> None:
            self.number = number

        def view(self) -> SimpleNamespace:
            """The game's view."""
            return SimpleNamespace(
                task=made.game(self.number).task,
                number=self.number,
                phase=made.phase(self.number),
                solver_to_move=True,
                verdict=Verdict.NONE,
                head=b"",
            )

    monkeypatch.setattr(game_view, "GameReader", Reader)
    return made


def test_a_game_that_a_node_does_not_have_yet_is_looked_at_again(chain: Chain) -> None:
    """Several nodes may share an address, so one node may count a game that another does not know yet."""
    watching = Defence(chain.context)
    chain.counted, chain.known = 2, 1
    watching.tick()
    assert list(watching._open) == [1]
    chain.known = 2
    watching.tick()
    assert list(watching._open) == [1, 2]


def test_a_game_on_a_task_that_is_still_being_loaded_is_looked_at_again(chain: Chain) -> None:
    watching = Defence(chain.context)
    chain.counted, chain.known, chain.loaded = 2, 2, False
    watching.tick()
    assert not watching._open
    chain.loaded = True
    watching.tick()
    assert list(watching._open) == [1, 2]


def test_all_moves_of_the_first_due_game_go_before_those_of_the_next(chain: Chain) -> None:
    """No move is mined at first. No game is answered again while its moves are in progress."""
    chain.counted, chain.known, chain.moves = 2, 2, NODES
    chain.mining = False
    watching = Defence(chain.context)
    assert watching.tick()
    asked = [(2, k) for k in range(NODES)] + [(1, k) for k in range(NODES)]
    assert chain.sent == asked, "game 2 has the earlier deadline"
    assert not watching.tick()
    assert watching.owes
    assert chain.sent == asked
    chain.mining = True
    assert watching.tick()
    assert chain.sent == 2 * asked


def test_a_game_whose_answer_fails_keeps_no_other_from_its_own(chain: Chain) -> None:
    chain.counted, chain.known, chain.moves, chain.broken = 2, 2, 1, {2}
    watching = Defence(chain.context)
    assert watching.tick()
    assert chain.sent == [(1, 0)]


def test_a_game_that_waits_is_not_answered(chain: Chain) -> None:
    chain.counted, chain.known, chain.moves, chain.waits = 1, 1, 1, True
    watching = Defence(chain.context)
    assert not watching.tick()
    assert not chain.sent
    chain.waits = False
    assert watching.tick()
    assert chain.sent == [(1, 0)]


def test_games_that_are_open_go_with_their_task(chain: Chain) -> None:
    watching = Defence(chain.context)
    chain.counted = chain.known = 2
    watching.tick()
    assert len(watching._open) == 2
    chain.stage = Stage.OVER
    watching.tick()
    assert not watching._open
    assert not watching._runs


def test_what_is_replayed_for_games_goes_with_the_last_of_them(chain: Chain) -> None:
    watching = Defence(chain.context)
    chain.counted = chain.known = 2
    watching.tick()
    assert (len(watching._runs), chain.replays) == (1, 1)
    chain.closed = True
    watching.tick()
    assert not watching._open
    assert not watching._runs


def test_games_on_a_task_that_is_over_are_left_alone(chain: Chain) -> None:
    watching = Defence(chain.context)
    chain.counted, chain.known, chain.stage = 1, 1, Stage.OVER
    watching.tick()
    assert not watching._open


@pytest.mark.parametrize("looks", [1, 5])
def test_games_that_swap_numbers_in_a_re_organisation_are_found_again(chain: Chain, looks: int) -> None:
    """Game 1 is a stranger's and game 2 ours. After the blocks of both are replaced, game 1 is ours."""
    chain.counted, chain.known, chain.moves = 2, 2, 1
    chain.tasks = {1: 8}
    watching = Defence(chain.context)
    for _ in range(looks):
        watching.tick()
        chain.mine()
    assert list(watching._open) == [2]
    chain.sent.clear()
    chain.tasks = {2: 8}
    chain.mine("b", forks=looks + 1)
    watching.tick()
    assert watching._tasks == {1: 7}
    assert chain.sent == [(1, 0)]


def test_a_game_whose_number_moves_down_in_a_re_organisation_is_found_again(chain: Chain) -> None:
    chain.counted, chain.known, chain.moves = 2, 2, 1
    chain.tasks = {1: 8}
    watching = Defence(chain.context)
    watching.tick()
    chain.counted, chain.known, chain.tasks = 1, 1, {}
    chain.mine("b", forks=2)
    chain.sent.clear()
    watching.tick()
    assert chain.sent == [(1, 0)]
    assert list(watching._states(chain.block.number)) == [1]


def test_a_closed_game_that_is_open_after_a_re_organisation_is_answered(chain: Chain) -> None:
    chain.counted, chain.known, chain.moves = 1, 1, 1
    watching = Defence(chain.context)
    watching.tick()
    watching.tick()
    chain.mine()
    chain.ended = {1}
    watching.tick()
    watching.tick()
    assert not watching._open
    chain.mine()
    watching.tick()
    chain.ended.clear()
    chain.mine("b", forks=2)
    chain.sent.clear()
    watching.tick()
    assert chain.sent == [(1, 0)]


def test_a_game_is_read_no_more_once_its_close_is_deep(chain: Chain) -> None:
    chain.counted, chain.known, chain.ended = 1, 1, {1}
    watching = Defence(chain.context)
    watching.tick()
    assert watching._ended
    chain.read.clear()
    for _ in range(10):
        chain.mine()
        watching.tick()
    assert not chain.read
    assert not watching._ended
    assert len(watching._stops) <= 10
