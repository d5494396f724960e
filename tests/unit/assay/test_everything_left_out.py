"""A task file without terms: the derived terms are stable, within bounds, and accepted by solvers with
default settings.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from assay.budgeting import COMPARABLE, LEAST, MOST, Sold, budget_of, comparable, rounded_up
from assay.deriving import Derived, Place
from assay.description import Description, TaskTable, TermsTable
from assay.errors import NobodyTakes
from assay.taking import remedy_of, require_taken
from protocol.chain.parameters import DEVNET, RECOMMENDED, TOKEN, Parameters
from protocol.chain.periods import NAMES, Load, periods
from protocol.chain.terms_bounds import require_within_bounds
from protocol.tasks.offers import Offer, Refusal, Rule, decide
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms
from protocol.tasks.usual_solver import SPEED, STAKE

SMALL = Load(segments=8, segment_steps=50, step_operations=10**7, state_bytes=300_000, bundle_bytes=700_000)
LARGE = Load(
    segments=100, segment_steps=50, step_operations=10**8, state_bytes=20_000_000, bundle_bytes=30_000_000
)
WIDE = replace(
    LARGE, traces=Traces(eager=10**8, called=10**8, hashed_bytes=3_000_000_000, value_bytes=500_000_000)
)
"""A task whose games need much more than replays: traces of 3 GB, and values of up to 500 MB."""
GWEI = 10**9
DEVELOPMENT = Place.at(DEVNET, None, None, block_time=1.0, present=GWEI)
ROLLUP = Place.at(RECOMMENDED, None, None, block_time=2.0, present=GWEI // 100)


def described(load: Load, **terms: int) -> Description:
    """A task file that gives only these terms, with amounts in whole tokens."""
    task = TaskTable(name="x", source="x.py", segments=load.segments, segment_steps=load.segment_steps)
    return Description(task=task, terms=TermsTable.model_validate(terms), folder=Path())


def terms_of(load: Load, derived: Derived) -> Terms:
    """The derived terms as they would be posted."""
    root = b"\1" * 32
    return Terms(
        program_id=root,
        constants_root=root,
        initial_state=root,
        bundle_hash=root,
        constants=2,
        state_tensors=4,
        segments=load.segments,
        segment_steps=load.segment_steps,
        step_operations=load.step_operations,
        state_bytes=load.state_bytes,
        arithmetic=1,
        thinning=1,
        bundle="http://127.0.0.1/bundles/1",
        **derived.terms(),
    )


@pytest.mark.parametrize(
    ("load", "place"),
    [(SMALL, DEVELOPMENT), (LARGE, DEVELOPMENT), (WIDE, DEVELOPMENT), (SMALL, ROLLUP), (WIDE, ROLLUP)],
    ids=["small", "large", "wide", "recommended", "wide, recommended"],
)
def test_a_task_without_terms_is_within_bounds_and_taken_by_a_solver_with_default_settings(
    load: Load, place: Place
) -> None:
    derived = Derived.of(described(load), place, load)
    terms = terms_of(load, derived)
    require_within_bounds(terms, place.parameters)
    decision = decide(terms, derived.usual_solver(terms))
    assert isinstance(decision, Offer), decision
    assert decision.floor.price * LEAST <= terms.budget <= decision.floor.price * MOST
    assert terms.stake <= STAKE * TOKEN
    # The speed of each of three accounts that share a third of the default speed.
    assert terms.least_speed <= SPEED / 3 / 3


def test_small_changes_of_the_price_of_gas_leave_all_terms_as_they_are() -> None:
    prices = [GWEI * 101 // 100, GWEI * 120 // 100, GWEI * 149 // 100]
    places = [Place.at(DEVNET, None, None, block_time=1.0, present=price) for price in prices]
    amounts = [Derived.of(described(LARGE, budget=20), place, LARGE).terms() for place in places]
    assert amounts[0] == amounts[1] == amounts[2]
    assert places[0].gas_price == 3 * GWEI, "twice the chain's, rounded up to a digit"


def test_what_a_file_gives_stays_and_the_rest_fits_it() -> None:
    given = {"attest_period": 100, "clock": 900, "budget": 20, "verifiers": 1}
    derived = Derived.of(described(SMALL, **given), DEVELOPMENT, SMALL)
    terms = terms_of(SMALL, derived)
    assert (terms.attest_period, terms.clock, terms.budget) == (100, 900, 20 * TOKEN)
    assert terms.verifiers == 1
    require_within_bounds(terms, DEVNET)
    said = derived.lines()[0]
    assert said.startswith("derived for 8 segments and this budget: bidding_period ")
    assert "attest_period" not in said


def times(load: Load, parameters: Parameters, block_time: float, **given: int) -> dict[str, int]:
    return periods(load, parameters, block_time, segments_per_verifier=1, copies=3, looks=False, given=given)


def test_periods_grow_with_the_work_and_with_the_chain_s_blocks() -> None:
    usual = times(SMALL, DEVNET, 1.0)
    assert list(usual) == list(NAMES)
    more = times(replace(SMALL, step_operations=4 * 10**8), DEVNET, 1.0)
    slow = times(SMALL, DEVNET, 5.0)
    assert more["training_period"] > 10 * usual["training_period"] / 4
    assert more["clock"] > usual["clock"]
    assert times(WIDE, DEVNET, 1.0)["clock"] > 10 * times(LARGE, DEVNET, 1.0)["clock"]
    assert slow["clock"] > 4 * usual["clock"]
    assert slow["bidding_period"] > 4 * usual["bidding_period"]


def test_there_is_twice_the_time_to_write_the_files_of_checkpoints() -> None:
    """The training period allows twice the time that the files of nine checkpoints take at 200 files a
    second. Each checkpoint has 20,000 tensors and a manifest, one file each.
    """
    many = times(replace(SMALL, state_tensors=20_000), DEVNET, 1.0)["training_period"]
    assert many >= 2 * 9 * 20_001 / 200
    few = times(replace(SMALL, state_tensors=100), DEVNET, 1.0)
    assert few["training_period"] == times(SMALL, DEVNET, 1.0)["training_period"]


def test_there_is_twice_the_time_to_serve_small_tensors() -> None:
    """The attestation period allows twice the time that it takes to serve three copies of 5,000 tensors, at
    1,000 tensors a second.
    """
    many = times(replace(SMALL, state_tensors=5_000), DEVNET, 1.0)["attest_period"]
    assert 2 * 3 * 5 - 1 <= many - times(SMALL, DEVNET, 1.0)["attest_period"] <= 2 * 3 * 5


def test_periods_keep_to_the_deployment_s_bounds_and_days_where_a_clock_has_them() -> None:
    day = 86_400
    usual = times(SMALL, RECOMMENDED, 12.0)
    assert usual["clock"] == 7 * day
    assert (usual["attest_period"], usual["challenge_period"]) == (day, 3 * day)
    huge = times(replace(LARGE, step_operations=10**14), RECOMMENDED, 12.0)
    assert huge["training_period"] == RECOMMENDED.max_period
    assert huge["clock"] == RECOMMENDED.max_clock


@pytest.mark.parametrize(
    ("changed", "rule", "words"),
    [
        ({"clock": 1, "replay_allowance": 0}, Rule.GAMES, "give a clock of at least "),
        ({"clock": 40, "replay_allowance": 0}, Rule.GAMES, "give a clock of at least "),
        ({"training_period": 2}, Rule.TRAINING, "give a training_period of at least 3 s"),
        ({"stake": 2_275 * TOKEN}, Rule.STAKE, "solver run --stake 2275"),
        ({"bond": 0}, Rule.BOND, "give a bond of at least"),
        ({"state_bytes": 10**10}, Rule.UPLINK, "give an attest_period of at least"),
        ({"budget": 10**15}, Rule.PRICE, "give a budget of at least"),
    ],
)
def test_what_no_solver_takes_is_refused_with_what_to_change(
    changed: dict[str, Any], rule: Rule, words: str
) -> None:
    terms = terms_of(SMALL, Derived.of(described(SMALL), DEVELOPMENT, SMALL))
    restitution: dict[str, Any] = {"restitution": 0} if "budget" in changed else {}
    refused = replace(terms, **{**restitution, **changed})
    decision = decide(refused, DEVELOPMENT.usual_solver)
    assert isinstance(decision, Refusal)
    assert decision.rule is rule
    assert words in remedy_of(decision, refused)
    with pytest.raises(NobodyTakes, match="--anyway"):
        require_taken(refused, DEVELOPMENT.usual_solver)


def test_what_a_remedy_names_is_enough() -> None:
    terms = terms_of(SMALL, Derived.of(described(SMALL), DEVELOPMENT, SMALL))
    for field, short in (("clock", 40), ("training_period", 2), ("bond", 0)):
        shorter: dict[str, Any] = {field: short}
        refused = replace(terms, replay_allowance=0, **shorter)
        decision = decide(refused, DEVELOPMENT.usual_solver)
        assert isinstance(decision, Refusal)
        least = 2 * decision.least if field == "bond" else decision.least
        enough: dict[str, Any] = {field: least}
        assert isinstance(decide(replace(refused, **enough), DEVELOPMENT.usual_solver), Offer), field


def test_a_budget_follows_what_tasks_of_about_this_size_cost_within_bounds() -> None:
    least, operations = 10 * TOKEN, 10**12
    usual = budget_of(least, operations)
    assert usual == 20 * TOKEN

    def after(price: int, of: int = operations) -> int:
        return budget_of(least, operations, [Sold(of, price)])

    assert after(18 * TOKEN) == 20 * TOKEN, "a single bidder asked for nine tenths"
    assert after(27 * TOKEN) == 30 * TOKEN
    assert after(54 * TOKEN, 2 * operations) == 30 * TOKEN, "by operations"
    assert after(10_000 * TOKEN) == MOST * least, "sham tasks move it no further"
    assert after(1) == rounded_up(LEAST * least)
    assert after(27 * TOKEN, COMPARABLE * operations + 1) == usual, "another size tells nothing"
    assert comparable(operations, [Sold(operations // COMPARABLE, 1), Sold(1, 1)]) == [
        Sold(operations // COMPARABLE, 1)
    ]


def test_cheap_sales_lower_a_derived_budget_and_dear_ones_raise_it() -> None:
    usual = Derived.of(described(SMALL), DEVELOPMENT, SMALL).budget

    def after(share: Fraction) -> int:
        sold = [Sold(SMALL.operations, int(usual * share))]
        return Derived.of(described(SMALL), DEVELOPMENT, SMALL, sold).budget

    assert after(Fraction(1, 10)) < usual * Fraction(3, 4)
    assert after(Fraction(9, 10)) == usual
    assert after(Fraction(3, 2)) > usual * Fraction(5, 4)


@pytest.mark.parametrize(("amount", "expected"), [(0, 0), (7, 7), (99, 99), (101, 110), (12_345, 13_000)])
def test_a_budget_has_two_digits(amount: int, expected: int) -> None:
    assert rounded_up(amount) == expected
