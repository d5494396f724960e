"""What each strategy does in every situation that it can see; populations; a custom strategy in a few
lines.
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from sim.agents.bystanders import Bystander, Griefer, Passing, Retrainer
from sim.agents.population import BYSTANDERS, SOLVERS, SUBMITTERS, VERIFIERS, population
from sim.agents.solvers import Bidding, Crashing, Late, Lazy, Noisy, Skipper, Solver, Withholder, Won, Work
from sim.agents.submitters import Challenging, Posting, Shill, Submitter, Vanishing
from sim.agents.verifiers import (
    Absent,
    Accusing,
    Check,
    Colluding,
    Copying,
    Mixing,
    Seats,
    Thrifty,
    Trusting,
    Verifier,
)
from sim.engine.simulate import Case, simulate
from sim.errors import ParameterError
from sim.mechanism.arrays import Flags, Floats
from sim.parameters import MarketParameters
from sim.units import TOKEN

PARAMETERS = MarketParameters(segments=40, budget=100 * TOKEN, restitution=0)
SEEN = list(product([True, False], repeat=3))
"""All combinations of three flags: the solver serves, a replay would differ (a hit), and others have attested."""


def flags(*values: bool) -> Flags:
    return np.array(values)


def seats(luck: float = 0.5, gas: float = 1.0) -> Seats:
    served, hit, others = (np.array(part) for part in zip(*SEEN))
    every = np.ones(len(SEEN))
    return Seats(PARAMETERS, served, hit, others, luck * every, gas * every, every)


NOBODY, SERVED, OTHERS, EVERYBODY = "00000000", "11110000", "10101010", "11111111"
"""Four rules, with one decision (a digit) for each entry of SEEN: never act, act if served, act if others
have attested, and always act.
"""
HONEST = (SERVED, "00110000", "11001111")
"""An honest verifier's rules for its replays, attestations and challenges. It replays if the solver serves,
attests if the solver serves and the replay agrees, and challenges in all other cases.
"""
BLIND = (NOBODY, SERVED, NOBODY)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Verifier(), HONEST),
        (Trusting(), BLIND),
        (Copying(), (NOBODY, OTHERS, NOBODY)),
        (Colluding(), (NOBODY, EVERYBODY, NOBODY)),
        (Absent(), (NOBODY, NOBODY, NOBODY)),
        (Accusing(), (NOBODY, NOBODY, EVERYBODY)),
        (Accusing(0.3), BLIND),
        (Mixing(0.6), HONEST),
        (Mixing(0.4), BLIND),
    ],
)
def test_verifiers(strategy: Verifier, expected: tuple[str, str, str]) -> None:
    """`expected` has the replays, the attestations and the challenges."""
    check = strategy.check(seats())
    assert tuple("".join("01"[done] for done in part.astype(int)) for part in check) == expected


@pytest.mark.parametrize("kind", VERIFIERS.values())
def test_who_does_not_look_does_not_know(kind: type[Verifier]) -> None:
    """A strategy that does not replay acts in the same way whether or not a replay would differ."""
    for luck in (0.0, 0.7, 0.999):
        check = kind().check(seats(luck))
        hit = seats().hit
        # In SEEN, the entries with a hit and those without have the same order.
        alike = [(part[hit] == part[~hit]) for part in check]
        assert (np.logical_and.reduce(alike) | check.replays[hit] | check.replays[~hit]).all()


def test_the_thrifty_stop_where_gas_and_replays_cost_more_than_fee_and_silence() -> None:
    replays = PARAMETERS.segments_per_verifier * PARAMETERS.replay_cost * PARAMETERS.training_cost / 40
    most = (PARAMETERS.seat_fee + PARAMETERS.silence_costs - replays) / PARAMETERS.gas_attest
    pays, not_quite = (Thrifty().check(seats(gas=most + more)) for more in (-1e-6, 1e-6))
    assert tuple("".join("01"[done] for done in part.astype(int)) for part in pays) == HONEST
    assert not np.any(not_quite)


def won(strategy: Solver, *luck: float) -> Work:
    return strategy.work(Won(PARAMETERS, np.array(luck)))


@pytest.mark.parametrize(
    ("strategy", "false", "effort"),
    [
        (Solver(), 0, 1.0),
        (Lazy(0.1), 4, 0.9),
        (Lazy(0.0), 1, 1 - 1 / 40),
        (Lazy(1.0), 40, 0.0),
        (Skipper(0.5), 1, 1 - 1 / 40),
        (Withholder(), 40, 0.0),
    ],
)
def test_solvers_save_what_they_invent(strategy: Solver, false: int, effort: float) -> None:
    work = won(strategy, 0.1, 0.9)
    assert work.false.tolist() == [false] * 2
    assert work.effort == pytest.approx(effort)
    assert work.submits.all()
    assert work.serves.all() == (strategy.name != "withholder")
    cost, luck = np.full((1, 1), 50.0), np.ones((1, 1))
    assert strategy.bid(Bidding(PARAMETERS, cost, luck)) == pytest.approx(
        50 * effort * (1 + PARAMETERS.markup)
    )


def test_solvers_with_bad_luck() -> None:
    assert won(Crashing(0.5), 0.4, 0.5).submits.tolist() == [False, True]
    noisy = won(Noisy(0.5), 0.4, 0.5)
    assert noisy.false.tolist() == [1, 0]
    assert not noisy.knows.any()


def test_who_is_late_on_purpose_asks_for_nothing() -> None:
    luck = np.array([[0.9, 1.1]])
    assert Late(0.5).bid(Bidding(PARAMETERS, np.full((1, 2), 50.0), luck)).tolist() == [[0.0, np.inf]]
    work = won(Late(), 0.1)
    assert (work.submits.tolist(), work.effort.tolist(), work.false.tolist()) == ([False], [0.0], [0])


def test_works_of_several_kinds_are_taken_by_row() -> None:
    works = [won(Solver(), 0.1, 0.2, 0.3), won(Lazy(0.5), 0.1, 0.2, 0.3), won(Withholder(), 0.1, 0.2, 0.3)]
    work = Work.of_kinds(works, np.array([2, 0, 1]))
    assert work.false.tolist() == [40, 0, 20]
    assert work.serves.tolist() == [False, True, True]
    assert work.effort.tolist() == [0.0, 1.0, 0.5]


def test_bystanders() -> None:
    view = Passing(
        PARAMETERS,
        flags(True, True, False, True),
        flags(True, False, True, True),
        flags(True, True, True, True),
        np.array([0.1, 0.1, 0.1, 0.9]),
    )
    look = Bystander(0.5).look(view)
    assert look.replays.tolist() == [1, 1, 0, 0]
    assert look.games.tolist() == [1, 0, 1, 0]
    grief = Griefer(0.5, games=3).look(view)
    assert grief.games.tolist() == [3, 3, 3, 0]
    assert not grief.replays.any()
    assert (Bystander().most_games, Griefer(1.0, 3).most_games) == (1, 3)
    retrainer = Retrainer(0.5)
    assert retrainer.late
    assert retrainer.look(view).replays.tolist() == [40, 40, 0, 0]
    assert retrainer.look(view).games.tolist() == [1, 1, 1, 0]
    right = view._replace(wrong=flags(False, False, False, False))
    assert retrainer.look(right).games.tolist() == [0, 0, 1, 0]


def test_submitters() -> None:
    view = Posting(PARAMETERS, np.array([0.0, 0.5]))
    quiet = Submitter().act(view)
    assert np.isinf(quiet.asks).all()
    assert not quiet.gone.any()
    assert not quiet.games.any()
    assert Shill(0.6, 0.8).act(view).asks.tolist() == pytest.approx([60 * TOKEN, 70 * TOKEN])
    assert Vanishing(0.2).act(view).gone.tolist() == [True, False]
    assert Challenging(2).act(view).games.tolist() == [2, 2]


def test_what_was_done_in_some_seats_or_by_others() -> None:
    done = Check(flags(True, True), flags(True, False), flags(False, True))
    some = done.where(flags(True, False))
    assert [part.tolist() for part in some] == [[True, False], [True, False], [False, False]]
    assert [part.tolist() for part in some | done] == [part.tolist() for part in done]
    assert not any(part.any() for part in Check.nothing((2, 3)))


# ------------------------------------------------------------------ populations


def test_members_lie_side_by_side() -> None:
    people = population(
        [(Solver(), 2), (Lazy(), 0), (Lazy(0.5), 3)],
        [(Verifier(), 3), (Trusting(), 1, 4)],
        [(Griefer(), 2)],
        Shill(),
    )
    assert [group.members for group in people.solvers] == [slice(0, 2), slice(2, 5)]
    assert people.slots.tolist() == [1, 1, 1, 4]
    assert people.honest == pytest.approx(3 / 7)
    assert (people.solver_count, people.verifier_count, people.bystander_count) == (5, 4, 2)


@pytest.mark.parametrize(
    ("solvers", "verifiers", "message"),
    [
        ([], [(Verifier(), 1)], "solvers: expected at least one member"),
        ([(Solver(), 1)], [(Verifier(), 0)], "verifiers: expected at least one member"),
        ([(Solver(), -1)], [(Verifier(), 1)], "solvers 'honest': expected 0 members or more"),
        ([(Solver(), 1)], [(Verifier(), 1, 0)], "verifiers 'honest': expected .* got 1 with 0"),
        ([(Solver(), 1)], [(Verifier(), 1, 3)], "verifiers 'honest': expected .* got 1 with 3"),
        ([(Solver(), 1)], [(Verifier(), 1, 1 << 16)], "verifiers 'honest': expected .* got 1 with 65536"),
    ],
)
def test_impossible_populations(
    solvers: list[tuple[Solver, int]], verifiers: list[tuple[Verifier, int]], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        population(solvers, verifiers)


def test_names_tell_strategies_apart() -> None:
    for kinds in (SOLVERS, VERIFIERS, BYSTANDERS, SUBMITTERS):
        assert all(name == kind.name for name, kind in kinds.items())
        assert "honest" in kinds or kinds is BYSTANDERS


@dataclass(frozen=True)
class Undercutter(Solver):
    """A solver that bids half of its cost."""

    name: ClassVar[str] = "undercutter"

    def bid(self, view: Bidding) -> Floats:
        return view.cost / 2


def test_a_strategy_of_ones_own_plays_with_the_others() -> None:
    case = Case(
        MarketParameters(training_cost=60 * TOKEN),
        population([(Solver(), 18), (Undercutter(), 2)], [(Verifier(), 20)]),
    )
    found = simulate(case, runs=50, rounds=3, seed=np.random.SeedSequence(1))
    assert found["settled"].min() == 1
    assert found["profit_solver_undercutter"].mean() < 0
    assert found["price"].mean() < 40 * TOKEN
