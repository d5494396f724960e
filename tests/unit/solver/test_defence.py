"""Which games a solver watches, and in which order it answers them."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.chain.receipts import Receipt
from protocol.dispute.view import Phase, Verdict
from protocol.node.logs import get
from solver import defence
from solver.context import Context
from solver.database import Stage
from solver.defence import Defence, by_deadline
from solver.metrics import Metrics
from solver.settings import SolverSettings
from solver.turns import Turns

CLOCK = 100
NODES = 16


def test_the_game_that_asked_first_is_answered_first_whatever_its_number() -> None:
    deadlines = {1: 2 * CLOCK, 2: 3 * CLOCK, 7: CLOCK}
    assert by_deadline(deadlines, deadlines.__getitem__) == [7, 1, 2]


@given(st.permutations(range(8)))
def test_every_move_is_in_time_if_each_takes_a_clock(asked: list[int]) -> None:
    """The chain's queue: the k-th request is due k clocks after all were made."""
    due = {game: (place + 1) * CLOCK for place, game in enumerate(asked)}
    now = 0
    for game in by_deadline(due, due.__getitem__):
        now += CLOCK
        assert now <= due[game]


class Chain:
    """Games 1, 2, … on task 7 as one node knows them, and a context that looks on."""

    def __init__(self) -> None:
        self.counted = self.known = 0
        self.stage = Stage.SUBMITTED
        self.closed = False
        self.replays = 0
        self.loaded = True
        self.moves = 0  # that each game asks for
        self.broken: set[int] = set()  # games whose answer fails
        self.sent: list[tuple[int, int]] = []
        self.mining = True

    def game(self, number: int) -> SimpleNamespace:
        """A node that does not have it answers with zeros."""
        return SimpleNamespace(task=7 if number <= self.known else 0, deadline=-number)

    def replay(self) -> object:
        """A run."""
        self.replays += 1
        return object()

    def defence(self, view: SimpleNamespace, _run: object) -> list[SimpleNamespace]:
        """Moves by game and number."""
        if view.number in self.broken:
            raise ZeroDivisionError
        return [
            SimpleNamespace(function="revealNode", note="", name=(view.number, k)) for k in range(self.moves)
        ]

    def send_moves(self, moves: list[SimpleNamespace], _head: object) -> list[SimpleNamespace]:
        """They are in the mempool."""
        self.sent += [move.name for move in moves]
        return moves

    def outcomes(self, sent: list[SimpleNamespace]) -> list[Receipt | None]:
        """Receipts, once there are blocks."""
        receipt = Receipt("0x", "revealNode", 1, "0x", True, 21_000, None, ())
        return [receipt if self.mining else None for _ in sent]

    @property
    def context(self) -> Context:
        """Of a solver that holds task 7."""
        run_store = SimpleNamespace(program=SimpleNamespace(program=None), replay=self.replay)
        games = SimpleNamespace(games=lambda: self.counted, game=self.game, send_moves=self.send_moves)
        context = SimpleNamespace(
            client=SimpleNamespace(
                game=games,
                outcomes=self.outcomes,
                deployment=SimpleNamespace(block=0),
                connection=SimpleNamespace(view=nullcontext),
            ),
            catalog=SimpleNamespace(run_store=lambda task: run_store if task == 7 and self.loaded else None),
            count=lambda *_what, **_about: None,
            database=SimpleNamespace(task=self.task, tasks=lambda: [self.task(7)]),
            metrics=Metrics(),
            settings=SolverSettings(),
            turns=Turns(),
            strategy=SimpleNamespace(defence=self.defence),
            log=get("test"),
        )
        return cast(Context, context)

    def task(self, _task: int) -> SimpleNamespace:
        """The only row."""
        return SimpleNamespace(task=7, stage=self.stage)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    made = Chain()

    class Reader:
        """A game in which it is the solver's turn, until all are closed."""

        def __init__(self, _game: object, number: int, *_about: object) -> None:
            self.number = number

        def view(self) -> SimpleNamespace:
            """Where it stands."""
            phase = Phase.CLOSED if made.closed else Phase.SEGMENT
            return SimpleNamespace(
                task=7, number=self.number, phase=phase, solver_to_move=True, verdict=Verdict.NONE, head=b""
            )

    monkeypatch.setattr(defence, "GameReader", Reader)
    return made


def test_a_game_that_a_node_does_not_have_yet_is_looked_at_again(chain: Chain) -> None:
    """Behind one address there are several nodes: one counts a game that another has not heard of."""
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
    """None is mined meanwhile, and no game is asked again while its moves are under way."""
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
