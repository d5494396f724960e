"""Looks and juries of a task: values that the task's file leaves out are derived from the deployment and the
other terms.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from assay.deriving import Place
from assay.description import read
from assay.source import captured
from assay.submitting import Prepared, prepare
from protocol.chain.parameters import DEVNET, RECOMMENDED
from protocol.chain.recommendation import RULES
from protocol.node.home import Home
from protocol.tasks.task import Terms

DIGITS = Path(__file__).parents[3] / "examples" / "digits.toml"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(captured(read(DIGITS)), Home(tmp_path_factory.mktemp("home")))


def terms(made: Prepared, **said: Any) -> Terms:
    """The terms that `made` would have if its description also had the values in `said`."""
    table = made.description.terms.model_copy(update=said)
    changed = replace(made, description=made.description.model_copy(update={"terms": table}))
    return changed.terms("http://127.0.0.1", changed.derived(Place(DEVNET)))


def test_an_unsaid_chance_is_none_and_half_of_the_time_to_attest_is_left_for_answers(
    prepared: Prepared,
) -> None:
    found = terms(prepared)
    assert (found.look_chance, found.move_time, found.attest_period) == (0, 20, 40)


def test_a_chance_and_a_time_are_taken_and_an_unsaid_lock_covers_them(prepared: Prepared) -> None:
    found = terms(prepared, look_chance=1_000, move_time=7, seat_lock=None)
    assert (found.look_chance, found.move_time) == (1_000, 7)
    picked = 1 - Fraction(9, 10) ** found.segments_per_verifier
    fear = picked * RULES.honest_share * found.seat_lock / 2
    assert found.seat_lock >= 4 * found.game_cost
    assert fear > found.seat_fee > Fraction(99, 100) * fear, (
        "skipping saves the fee; the least lock that it takes"
    )


def test_on_a_deployment_for_many_tasks_have_looks_and_juries(prepared: Prepared) -> None:
    table = prepared.description.terms.model_copy(update={"seat_lock": None})
    made = replace(prepared, description=prepared.description.model_copy(update={"terms": table}))
    derived = made.derived(Place(RECOMMENDED))
    assert (derived.jurors, derived.amounts.look_chance > 0) == (31, True)
    assert made.terms("http://127.0.0.1", derived).jurors == 31
    (priced,) = (line for line in derived.lines() if line.startswith("trust costs"))
    assert "no audit guarantee" not in priced


def test_a_file_may_do_without_them_and_is_told_what_it_lacks(prepared: Prepared) -> None:
    table = prepared.description.terms.model_copy(update={"jurors": 0, "look_chance": 0})
    made = replace(prepared, description=prepared.description.model_copy(update={"terms": table}))
    derived = made.derived(Place(RECOMMENDED))
    assert (derived.jurors, derived.amounts.look_chance) == (0, 0)
    (priced,) = (line for line in derived.lines() if line.startswith("trust costs"))
    assert priced.endswith(
        "no audit guarantee: seats that replay nothing are paid, data withheld from honest seats come before no jury"
    )
