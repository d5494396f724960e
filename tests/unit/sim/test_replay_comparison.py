"""Comparison of two sets of books: an entry missing from one counts as zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.errors import ExitCode
from sim.errors import Disagreement, StudyError
from sim.parameters import MarketParameters
from sim.replay.amounts import Amounts
from sim.replay.books import Books
from sim.replay.comparison import BOND, FREE, REGISTRATION, STAKE, Comparison, Place, compare
from sim.replay.scenarios import SCENARIOS, scenario
from sim.replay.shadow import Shadow

HELD = {Place("a", FREE): 10**30, Place("b", FREE): 0}


def test_equal_accounts() -> None:
    same = compare("s", "e", HELD, {Place("a", FREE): 10**30})
    assert [line.difference for line in same.lines] == [0, 0]
    assert same.differing == ()


@pytest.mark.parametrize(
    ("chain", "differing"),
    [
        ({Place("a", FREE): 10**30 + 1}, [("a", 1)]),
        ({}, [("a", -(10**30))]),
        ({**HELD, Place("stranger", BOND): 5}, [("stranger", 5)]),
        ({Place("a", STAKE): 10**30}, [("a", -(10**30)), ("a", 10**30)]),
    ],
)
def test_differences_are_named(chain: dict[Place, int], differing: list[tuple[str, int]]) -> None:
    with pytest.raises(Disagreement) as raised:
        compare("s", "an event", HELD, chain)
    error = raised.value
    assert error.exit_code is ExitCode.FRAUD
    assert isinstance(error.comparison, Comparison)
    assert [(line.place.owner, line.difference) for line in error.comparison.differing] == differing
    assert "an event" in str(error)
    assert all(f"{difference:+}" in str(error) for _, difference in differing)


def test_books_keep_open_locks_apart() -> None:
    terms = MarketParameters()
    names = ["submitter", "drawer", "solver"]
    books = Books(names, [100, 0, 50], Amounts.of(terms, exact=True), terms)
    books.lock(2, STAKE, 30)
    books.lock(2, BOND, 5)
    held = books.balances()
    assert (held[Place("solver", FREE)], held[Place("solver", STAKE)], held[Place("solver", BOND)]) == (
        15,
        30,
        5,
    )
    books.release(2, STAKE, 30)
    books.withdraw(2, 45)
    held = books.balances()
    assert (held[Place("solver", FREE)], held[Place("solver", STAKE)]) == (0, 0)
    assert held[Place("vault", "held")] == 105


def test_scenarios_have_their_names_and_unknown_ones_are_refused() -> None:
    assert all(scenario(name).name == name for name in SCENARIOS)
    with pytest.raises(StudyError, match="expected honest, cheat"):
        scenario("nothing")


def test_a_silent_account_lacks_a_part_of_its_registration_until_it_resumes() -> None:
    terms = MarketParameters(draw_fee=3, audit_fee=5, segments_per_verifier=2)
    amounts = Amounts.of(terms, exact=True)
    fee, draw_fee, unit = amounts.seat_fee(terms), amounts.draw_fee, amounts.stake_unit
    names = ["submitter", "drawer", "a", "b"]
    books = Books(names, [0, 0, 2 * unit, 2 * unit], amounts, terms)
    books.register(2, [1, 1])
    books.asked([2, 3])
    held = books.balances()
    # The draw's purse stays in the first account's lock until the draw is executed.
    assert held[Place("a", REGISTRATION)] == unit - fee
    assert held[Place("b", REGISTRATION)] == unit - fee - draw_fee
    assert held[Place("drawer", FREE)] == 0
    books.redrawn()
    held = books.balances()
    assert held[Place("a", REGISTRATION)] == unit - fee - draw_fee
    assert held[Place("drawer", FREE)] == draw_fee
    books.resumed(2)
    held = books.balances()
    assert (held[Place("a", REGISTRATION)], held[Place("a", FREE)]) == (unit, unit - fee - draw_fee)
    assert held[Place("b", FREE)] == unit


@pytest.mark.parametrize(
    "more", [{"arrival_rate": 0.5}, {"solver_capital": 3}, {"overlap": 2}, {"capital_rate": 0.1}]
)
def test_what_leaves_the_chain_without_a_task_is_not_replayed(more: dict[str, Any]) -> None:
    story = scenario("honest")
    (name,) = more
    with pytest.raises(StudyError, match=name):
        Shadow(replace(story, parameters=replace(story.parameters, **more)))
