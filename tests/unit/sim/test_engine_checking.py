"""Redraws: who has attested stays attested, and whoever comes later sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Absent, Copying, Verifier
from sim.engine.checking import Checker
from sim.engine.market import Market
from sim.engine.streams import Stream, streams
from sim.engine.task import Checks
from sim.mechanism.arrays import Floats, Indices
from sim.mechanism.attestation import attested
from sim.mechanism.draw import Draw, complete
from sim.parameters import MarketParameters


class Told(Stream):
    """The same number each time, and slots that are given."""

    def __init__(self, number: float, slots: Sequence[int] = ()) -> None:
        super().__init__([], 1)
        self._number = number
        self._slots = slots

    def uniform(self, *shape: int) -> Floats:
        return np.full((*shape, 1), self._number)

    def below(self, _most: int, *_shape: int) -> Indices:
        return np.array(self._slots)[:, None]


class Seated(Checker):
    """Seats whoever the test names."""

    drawn: Draw

    def draw(self) -> Draw:
        return self.drawn


def checked(people: Population, who: Sequence[int], redrawn: Told, **changed: Any) -> Checks:
    """One task of an honest solver and one redraw: K = 3, a seat has segments 3 and 1."""
    parameters = MarketParameters(
        segments=3, verifiers=len(who), segments_per_verifier=1, device_spread=0.0, redraws=1, **changed
    )
    luck = replace(streams(np.random.SeedSequence(1), 1), outages=Told(0.9), redraws=redrawn)
    checker = Seated(parameters, people, luck)
    checker.drawn = complete(np.array(who)[:, None], np.ones((1, len(who), 1), dtype=np.int32), 3)
    return checker.check(Market(parameters, people, 1, 1, luck).begin())


def test_a_redraw_erases_no_attestation() -> None:
    """Seat 1 is empty; whoever attested from seat 2 is drawn for it too, and is offline by then."""
    people = population([(Solver(), 1)], [(Verifier(), 1), (Absent(), 1)])
    checks = checked(people, (1, 0), Told(0.0, (0, 0)), downtime=0.5)
    assert checks.drawn.verifiers[:, 0].tolist() == [0, 0]
    done = attested(checks.drawn, checks.check.attests)[:, :, 0]
    assert done.tolist() == [[False, True], [False, True]]
    assert (done == checks.drawn.due[:, :, 0]).all()


def test_whoever_copies_sees_what_was_attested_before_the_redraw() -> None:
    people = population([(Solver(), 1)], [(Absent(), 1), (Verifier(), 1), (Copying(), 1)])
    checks = checked(people, (0, 1), Told(0.9, (2, 2)), matches=2)
    assert checks.drawn.verifiers[:, 0].tolist() == [2, 1]
    assert checks.check.attests[:, 0].tolist() == [True, True]


def test_whoever_copies_sees_nothing_of_those_that_are_offline() -> None:
    people = population([(Solver(), 1)], [(Verifier(), 1), (Copying(), 1)])
    checks = checked(people, (0, 1), Told(0.9, (0, 1)), downtime=0.95, matches=2)
    assert not checks.check.attests.any()
