"""Only seats that are silent or empty are drawn again. An account that attested keeps its seat, and accounts
that are drawn later see its attestation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Absent, Accusing, Copying, Verifier
from sim.engine.checking import Checker
from sim.engine.market import Market
from sim.engine.streams import Stream, streams
from sim.engine.task import Checks
from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.draw import NOBODY, Draw
from sim.parameters import MarketParameters


class Seated(Checker):
    """A checker that gives the seats to the accounts in `drawn`, one entry for each draw. It records, for
    each redraw, the seats that are asked for and the accounts that are already bound to the task.
    """

    drawn: Sequence[Sequence[int]]

    def draw(self) -> Draw:
        self.asked: list[list[bool]] = []
        self.bound: list[list[int]] = []
        self.left = [np.array(who)[:, None] for who in self.drawn]
        who = self.left.pop(0)
        return Draw(who, np.ones((1, len(who), 1), dtype=np.int32))

    def again(self, rows: Indices, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        assert rows.tolist() == [0]
        self.asked.append(asked[:, 0].tolist())
        self.bound.append(bound[:, 0].tolist())
        return self.left.pop(0)


def checked(people: Population, drawn: Sequence[Sequence[int]], **changed: Any) -> tuple[Checks, Seated]:
    """Check one task of an honest solver."""
    parameters = MarketParameters(
        segments=3, verifiers=len(drawn[0]), segments_per_verifier=1, device_spread=0.0, **changed
    )
    luck = streams(np.random.SeedSequence(1), 1)
    checker = Seated(parameters, people, luck)
    checker.drawn = drawn
    return checker.check(Market(parameters, people, 1, 1, luck).begin()), checker


def test_a_redraw_asks_for_the_silent_seats_and_keeps_the_others() -> None:
    people = population([(Solver(), 1)], [(Verifier(), 2), (Absent(), 2)])
    checks, checker = checked(people, [(2, 0), (3, NOBODY), (1, NOBODY)])
    assert checker.asked == [[True, False], [True, False]]
    assert checker.bound == [[2, 0], [2, 0, 3, NOBODY]]
    assert checks.accounts[:, 0].tolist() == [1, 0]
    assert checks.attested.all()
    assert [silence.accounts[:, 0].tolist() for silence in checks.silences] == [[2, 0], [3, 0]]
    assert [silence.silent[:, 0].tolist() for silence in checks.silences] == [[True, False]] * 2
    assert checks.escrow_draws.tolist() == [1]


def test_an_empty_seat_is_drawn_again_by_the_escrow() -> None:
    people = population([(Solver(), 1)], [(Verifier(), 2)])
    checks, checker = checked(people, [(0, NOBODY), (NOBODY, NOBODY), (NOBODY, 1)])
    assert checker.asked == [[False, True]] * 2
    assert not any(silence.silent.any() for silence in checks.silences)
    assert checks.escrow_draws.tolist() == [3]
    assert checks.full.all()


def test_whoever_copies_sees_what_was_attested_before_the_redraw() -> None:
    people = population([(Solver(), 1)], [(Absent(), 1), (Verifier(), 1), (Copying(), 1)])
    checks, _ = checked(people, [(0, 1), (2, NOBODY)])
    assert checks.accounts[:, 0].tolist() == [2, 1]
    assert checks.attested.all()


def test_an_accuser_is_silent_and_its_game_stays() -> None:
    people = population([(Solver(), 1)], [(Accusing(), 1), (Verifier(), 1)])
    checks, _ = checked(people, [(0,), (1,)])
    assert checks.accounts[:, 0].tolist() == [1]
    assert checks.games.opened.sum() == 1
    assert not checks.won.any()
    assert len(checks.sittings) == 2
