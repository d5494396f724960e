"""The measured price of trust: the page shows the stored results, and records are summed correctly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.trust.__main__ import LOOKED, TASKS, missing
from benchmarks.trust.price import TooFewTasks, audit_days, duties, parts
from benchmarks.trust.records import Record
from protocol.chain.parameters import TOKEN
from sim.trust_table import DAY, MEASURED, PARTS, ROLLUP, measured_lines

KEPT: dict[str, Any] = json.loads(MEASURED.read_text())


def record(looks: int) -> Record:
    """The record of a task with `looks` looks. Its fees and its stake are exactly those of its terms, and its
    settlement takes a million gas.
    """
    priced = ROLLUP.price(1_000, 3)
    amounts = priced.amounts
    gas = {
        "solver": {"settle": [1_000_000]},
        "verifier": {"attest": [3 * 100_000], "attest look": [50_000] * looks},
    }
    return Record(
        looks=looks,
        seconds=5 * DAY,
        gas=gas,
        seat_fees=[amounts.seat_fee] * 3,
        look_fees=[amounts.audit_fee] * looks,
        draw_fees=[priced.setting.draw_fee] * 2,
        escrow=0,
        delay_penalty=0,
        stake=amounts.stake * 5 * DAY,
        seats=[4 * DAY] * 3,
        lookers=[2 * DAY] * looks,
    )


def test_fees_are_the_tables() -> None:
    found = {part.name: part for part in parts([record(0), record(2)])}
    assert found["audits"].ratio == pytest.approx(1)
    assert found["looks"].ratio == pytest.approx(1)
    assert found["all"].measured == pytest.approx(
        sum(found[name].measured for name in PARTS if name != "all")
    )


def test_capital_is_what_was_locked_for_as_long_as_it_was() -> None:
    priced = ROLLUP.price(1_000, 3)
    capital = next(part for part in parts([record(0), record(2)]) if part.name == "capital")
    stake = priced.amounts.stake * 5 / 365 / 10
    assert capital.measured > 100 * stake / (1_000 * TOKEN)


@pytest.mark.parametrize(("looks", "lacks"), [(0, "with looks"), (2, "without looks")])
def test_a_price_needs_tasks_with_looks_and_tasks_without(looks: int, lacks: str) -> None:
    with pytest.raises(TooFewTasks, match=f"expected a task {lacks}, got none among 3 tasks"):
        audit_days([record(looks)] * 3)


def test_tasks_are_played_until_there_is_a_price() -> None:
    assert missing([record(2)] * (TASKS - 1)) == f"{TASKS} tasks"
    assert missing([record(0)] * TASKS) == f"a total of {LOOKED} looks"
    assert missing([record(LOOKED)] * TASKS) == "a task without looks"
    assert missing([record(LOOKED)] * TASKS + [record(0)]) == ""
    assert missing([record(LOOKED)] + [record(0)] * (TASKS - 1)) == ""


def test_gas_is_by_what_it_was_for() -> None:
    task, seat, look, _draw = duties([record(0), record(2)])
    assert (task.measured, seat.measured, look.measured) == (1_000_000, 100_000, 50_000)


def test_the_page_shows_what_is_kept() -> None:
    text = " ".join(measured_lines(KEPT))
    assert f"{KEPT['tasks']} tasks of 1,000 tokens" in " ".join(text.split())
    assert f"| measured | {KEPT['parts']['audits'][0]:.3f} |" in text


def test_what_was_measured_is_what_is_counted_for_the_terms_that_were_played() -> None:
    for name, (measured, counted) in KEPT["parts"].items():
        assert measured == pytest.approx(counted, rel=0.1), name


def test_the_page_tells_terms_that_were_played_from_those_of_now() -> None:
    now = 100 * ROLLUP.price(KEPT["budget"], KEPT["days of training"]).share()
    counted = KEPT["parts"]["all"][1]
    changed = f"it is {now:.2f} by the terms of now" in " ".join(" ".join(measured_lines(KEPT)).split())
    assert changed == (abs(now - counted) > 0.01)
    parts = {name: [0.0, 100 * ROLLUP.price(1_000, 3).share(*of)] for name, of in PARTS.items()}
    same = {**KEPT, "budget": 1_000, "days of training": 3, "parts": parts}
    assert "by the terms of now" not in " ".join(measured_lines(same))
