"""Auctions: the simulated formats agree with theory, `weakest` completes the most tasks, and findings follow
the table.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import sim
from sim.errors import ParameterError
from sim.mechanism.auctions import cheapest, weakest
from sim.results.results import Results
from sim.studies.auctions import Auctions
from sim.studies.matching import Batch, expected_done, most_done, play
from sim.sweeping.plan import plan
from sim.units import TOKEN

BATCH = Batch(4, 1.0, 0.25, 0.7, 0.5, 0.5, 150.0, 60.0)


@pytest.fixture(scope="module")
def results() -> Results:
    return sim.run("auctions", runs=600)


def test_the_engine_meets_the_closed_forms(results: Results) -> None:
    claims = list(results.answer.claims)
    assert [claim.text for claim in claims if not claim.holds] == []
    texts = [claim.text for claim in claims]
    # Trade, price and cost of 4 formats at 11 points; variance for 5 bidder counts and a budget; 2 rules.
    assert len(texts) == 12 * 11 + (5 + 1) + 2 * 10
    price = next(
        claim for claim in claims if claim.text.startswith("second price: price at solver_count 5, budget 90")
    )
    assert price.expected == pytest.approx(30 + 60 * 2 / 6)
    assert 0 < price.together.error < 0.5


def test_findings_say_what_the_table_has(results: Results) -> None:
    costs, efficient, risk, done, welfare = (finding.sentence for finding in results.answer.findings)
    assert costs.startswith("Descending bids cost 50.")
    assert "from 1 to 20 bidders the price falls from 81.7 to 3" in costs
    assert efficient.startswith("A budget of 40 tokens leaves 6")
    assert "a posted price does best at 60" in efficient
    assert "with 5 bidders" in risk
    assert done.startswith("The cheapest bid wastes strong devices: where strong devices ask less it does")
    assert "where strong devices ask more it does as much as any" in done
    assert "nothing where strong devices ask more" in welfare
    assert all(finding.figure for finding in results.answer.findings)


def test_findings_change_with_the_data(results: Results) -> None:
    table = {name: results.rows[name] for name in results.rows}
    table["price_second_price"] = 2 * table["price_second_price"]
    table["done_cheapest"] = table["done_weakest"]
    answer = Auctions().answer(table)
    assert "on average, -50.0%" in answer.findings[0].sentence
    assert "on average, -50.0%" not in results.answer.findings[0].sentence
    assert "wastes no strong devices" in answer.findings[3].sentence
    failed = [claim.text for claim in answer.claims if not claim.holds]
    assert any(text.startswith("second price: price") for text in failed)
    assert any(text.startswith("cheapest that can") for text in failed)


def test_findings_need_the_axes_that_they_are_about() -> None:
    answer = sim.run("auctions", runs=20, params={"load": [0.5, 1]}).answer
    assert len(answer.findings) == 4
    assert "bidders" not in answer.findings[0].sentence
    assert not any("does best at" in finding.sentence for finding in answer.findings)


def test_late_bids_cost_more_where_many_bid() -> None:
    found = sim.run(
        "auctions", runs=200, params={"solver_count": 20, "budget": 90, "load": 1, "economy": 0.25}
    ).rows
    assert found["price_late"].mean() > found["price_descending"].mean() + 3 * TOKEN


def test_the_most_that_can_be_done_by_trying_all_assignments() -> None:
    generator = np.random.default_rng(1)
    needs, strength = np.exp(generator.standard_normal((2, 4, 50)))
    best = [
        max(sum(n <= s for n, s in zip(mine, order)) for order in permutations(theirs))
        for mine, theirs in zip(needs.T, strength.T)
    ]
    assert most_done(needs, strength).tolist() == best


@pytest.mark.parametrize("load", [0.25, 1.0, 2.0])
def test_the_weakest_that_can_does_the_most(load: float) -> None:
    batch = Batch(**{**BATCH.__dict__, "load": load})
    found = play(batch, runs=300, seed=np.random.SeedSequence(1))
    assert found["done_weakest"].tolist() == found["done_most"].tolist()
    assert (found["done_cheapest"] <= found["done_most"]).all()
    dearer = play(
        Batch(**{**BATCH.__dict__, "load": load, "economy": -0.25}), runs=300, seed=np.random.SeedSequence(1)
    )
    assert dearer["done_cheapest"].tolist() == dearer["done_most"].tolist()


def test_the_cheapest_by_hand() -> None:
    """Two devices: the stronger one can do a task with chance 1 / 2, and the weaker one never can."""
    strength = np.array([[1e-9], [1.0]])
    assert expected_done(BATCH, strength)[0] == pytest.approx(1 - 0.5**4)


def test_a_runs_luck_is_its_own() -> None:
    few, many = (play(BATCH, runs=runs, seed=np.random.SeedSequence(1)) for runs in (3, 300))
    assert all(few[name].tolist() == many[name][:3].tolist() for name in few)


def test_weakest_pays_its_ask_and_leaves_out_who_asks_too_much() -> None:
    asks, strength = np.array([[5, 9], [6, 9], [2, 9]]), np.array([[2.0], [1.0], [3.0]]) * np.ones(2)
    sold = weakest(strength)(asks, np.array([5, 5]))
    assert (sold.sold.tolist(), sold.winner[0], sold.price.tolist()) == ([True, False], 0, [5, 0])
    assert cheapest(asks, np.array([5, 5])).winner[0] == 2


def test_what_the_closed_forms_do_not_know_is_refused() -> None:
    with pytest.raises(ParameterError, match="gas_price"):
        sim.run("auctions", runs=2, params={"gas_price": 1e-6})
    with pytest.raises(ParameterError, match="load"):
        sim.run("auctions", runs=2, params={"load": 5})
    with pytest.raises(ParameterError, match="at least the lowest, 45 tokens"):
        sim.run("auctions", runs=2, params={"device_range": 0.5, "budget": 40})
    with pytest.raises(
        ParameterError, match=r"worth: expected more than the lowest cost, 30 tokens, .* got 20"
    ):
        plan("auctions", {"worth": (20 * TOKEN,)})
    with pytest.raises(ParameterError, match="training_cost: expected costs that differ"):
        plan("auctions", {"training_cost": (0,)})
