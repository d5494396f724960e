"""Tasks in flight: no account has a seat in two of them, and no token is in two stakes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sim.agents.population import Population, population
from sim.agents.solvers import Crashing, Lazy, Solver, Withholder
from sim.agents.verifiers import Absent, Verifier
from sim.engine.flight import Seated, Stakes
from sim.engine.market import Market
from sim.engine.streams import streams
from sim.mechanism.auctions import cheapest
from sim.mechanism.booking import FIRST_SOLVER
from sim.mechanism.draw import NOBODY
from sim.units import TOKEN
from tests.unit.sim.small_market import SILENCE, SMALL, each, result

ROWS = 64


def market(people: Population, rounds: int, **changed: Any) -> Market:
    luck = streams(np.random.SeedSequence(7), ROWS)
    return Market(SMALL.with_values(changed), people, ROWS, rounds, luck, cheapest)


def drawn(played: Market) -> list[int]:
    """Play a round. Returns, for the first row, the accounts drawn for the round's task."""
    task = played.begin()
    checks = played.checker.check(task)
    played.closer.end(task, checks)
    return [account for account in checks.drawn[:, 0].tolist() if account != NOBODY]


@pytest.mark.parametrize("overlap", [1, 2, 3])
def test_nobody_has_seats_of_two_tasks_in_flight(overlap: int) -> None:
    """No account has a seat in two tasks in flight. There are six accounts, and up to three tasks in flight
    with two seats each. When a task ends, its accounts become free again.
    """
    people = population([(Solver(), 1)], [(Verifier(), 6)])
    played = market(people, 40, verifiers=2, overlap=overlap)
    tasks = [drawn(played) for _ in range(40)]
    for number in range(40 - overlap + 1):
        together = [account for task in tasks[number : number + overlap] for account in task]
        assert len(together) == len(set(together))
    again = sum(bool(set(tasks[n]) & set(tasks[n + overlap])) for n in range(40 - overlap))
    assert again > 0


def test_whoever_was_silent_is_suspended_as_long() -> None:
    """One absent and one honest account.

    If the first task draws both, the second task finds nobody. If the first task draws only the honest
    account, the second task draws the absent one, which is silent.
    """
    people = population([(Solver(), 1)], [(Absent(), 1), (Verifier(), 1)])
    found = result(people, runs=64, rounds=2, overlap=2)
    each(found, settled=0.5, void=0.5, silent=0.5, profit_verifier_absent=-SILENCE / 2)


def test_a_redraw_passes_over_those_that_tasks_in_flight_have() -> None:
    """A task's redraws never find an account of the previous task."""
    people = population([(Solver(), 1)], [(Absent(), 2), (Verifier(), 1)])
    played = market(people, 9, overlap=2)
    tasks = [drawn(played) for _ in range(9)]
    assert any(len(task) > 1 for task in tasks)
    for before, after in pairwise(tasks):
        assert not set(before) & set(after)


def test_the_oldest_task_is_over_first() -> None:
    seated = Seated(3)
    assert seated.accounts(2).shape == (0, 2)
    for task in ([[4, NOBODY], [NOBODY, 5]], [[6, 7], [NOBODY, NOBODY]], [[8, 9]]):
        seated.add(np.array(task))
    # Columns are compacted, and rows without accounts are dropped.
    assert [sorted(column) for column in seated.accounts(2).T.tolist()] == [[6, 8], [7, 9]]
    alone = Seated(1)
    alone.add(np.array([[4, 5]]))
    assert alone.accounts(2).shape == (0, 2)


def test_stakes_by_hand() -> None:
    stakes = Stakes(3, 10, slice(2, 4), 2)
    locked = []
    for solvers, flags in (([2, 3], [True, False]), ([2, 2], [True, True]), ([3, 3], [True, True])):
        stakes.add(np.array(solvers), np.array(flags))
        locked.append(stakes.locked.tolist())
    assert locked == [[[10, 0], [0, 0]], [[20, 10], [0, 0]], [[10, 10], [10, 10]]]


# ------------------------------------------------------------------ a given capital


@pytest.mark.parametrize(
    ("overlap", "capital", "sold"), [(1, 1, 6), (2, 1, 3), (3, 1, 2), (3, 2, 4), (3, 3, 6), (6, 4, 4)]
)
def test_a_solver_bids_no_more_than_its_stakes_cover(overlap: int, capital: int, sold: int) -> None:
    people = population([(Solver(), 1)], [(Verifier(), 6)])
    found = result(people, rounds=6, overlap=overlap, solver_capital=capital)
    each(found, settled=sold / 6, unsold=1 - sold / 6)


def test_what_it_earns_is_capital_too() -> None:
    """A task earns 60 tokens, so two tasks earn another stake of 120."""
    people = population([(Solver(), 1)], [(Verifier(), 9)])
    stake: dict[str, Any] = {"stake": 120 * TOKEN, "retrain_reward": 10 * TOKEN, "restitution": 50 * TOKEN}
    found = result(people, rounds=5, overlap=2, solver_capital=1, **stake)
    # Sold, unsold, sold; then 240 tokens cover two stakes.
    each(found, settled=4 / 5, unsold=1 / 5)


def test_a_stake_that_is_lost_is_locked_no_more() -> None:
    """A solver with capital for n stakes loses them in the first n tasks, and sells no further task."""
    people = population([(Withholder(), 1)], [(Verifier(), 9)])
    for capital in (2, 3):
        found = result(people, rounds=4, overlap=4, solver_capital=capital)
        each(found, convicted=capital / 4, unsold=1 - capital / 4)


def test_no_stake_is_locked_by_who_submits_nothing() -> None:
    """A solver with one stake of 1,000 tokens misses a deadline, which costs it 10 tokens. The rest is less
    than a stake, so the solver sells no further task. Without this penalty, it sells every task.
    """
    people = population([(Crashing(1.0), 1)], [(Verifier(), 9)])
    each(result(people, rounds=4, overlap=4, solver_capital=1), expired=1 / 4, unsold=3 / 4)
    # Without a penalty, missed deadlines cost nothing.
    found = result(people, rounds=4, overlap=4, solver_capital=1, delay_penalty=0)
    each(found, expired=1)


def test_stakes_in_flight_stay_free_tokens_of_the_ledger() -> None:
    people = population([(Lazy(1.0), 1), (Solver(), 1)], [(Verifier(), 30)])
    played = market(people, 5, overlap=3)
    for _ in range(5):
        played.play()
        assert played.books.ledger.balanced()
    locked = played.books.stakes.locked
    assert locked.shape == (2, ROWS)
    assert (locked.sum(axis=0) <= 2 * SMALL.stake).all()
    assert played.books.solvers.start == FIRST_SOLVER
