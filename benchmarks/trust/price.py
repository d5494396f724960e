"""The measured price of trust, divided into the same parts as in the table in docs/economics.md, and compared
with the table's figures for the same case.

The prices of gas, coin and capital, and the utilisation of verifiers' capital, are taken from the table. The
expected number of looks follows from the terms. Gas, fees and lock times are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean
from typing import Any, Final

from benchmarks.trust.life import BUDGET, TRAINING_DAYS, amounts
from benchmarks.trust.records import Gas, Record
from protocol.chain.duties import GAS, LAST_SEAT, UNPAID_LOOK, UNPAID_SEAT
from protocol.chain.parameters import TOKEN
from protocol.chain.recommendation import RULES
from protocol.tasks.amounts import capital_cost
from protocol.tasks.economics import expected_look_draws, expected_looks
from protocol.tasks.task import RATE_OF_ALL
from sim.trust_table import PARTS, ROLLUP

DRAWS: Final = frozenset({"draw", "draw (refused)"})
"""Calls that are paid for by the fees for draws, whichever party makes these calls."""
LOOKS: Final = frozenset({"attest look", "attest look (refused)", "release look", "reveal"})
"""Calls that a look causes. The looker makes them, or the seat that the looker checks."""
ONCE: Final = frozenset({"announce", "approve", "deposit", "register"})
"""Calls that a party makes only once, because its tokens stay in the vault for later tasks."""


@dataclass(frozen=True)
class Part:
    """One part of the price, in percent of the budget."""

    name: str
    measured: float
    table: float

    @property
    def ratio(self) -> float:
        """The measured value divided by the table's."""
        return self.measured / self.table


@dataclass(frozen=True)
class Duty:
    """The mean gas of one kind of work, as measured and as the table counts it."""

    name: str
    measured: float
    counted: float


class TooFewTasks(ValueError):
    """No task with looks was played, or none without looks, so there is no mean over such tasks."""


def lacking(records: Sequence[Record]) -> str:
    """The kind of task that must still be played before there is a price, in words; "" if the played tasks
    are enough.
    """
    if not any(record.looks for record in records):
        return "a task with looks"
    return "a task without looks" if all(record.looks for record in records) else ""


def parts(records: Sequence[Record]) -> list[Part]:
    """All parts of the price, and their sum. Raises TooFewTasks."""
    made, setting = amounts(), ROLLUP.setting(BUDGET, TRAINING_DAYS)
    looked, draws = (
        expected_looks(made.look_chance, made.slots),
        expected_look_draws(made.look_chance, made.slots),
    )
    draw_fee = mean(fee for record in records for fee in record.draw_fees)
    look_fee = mean(fee for record in records for fee in record.look_fees)
    locked = made.verifiers * _expected(records, lambda record: mean(record.seats)) + float(looked) * mean(
        seconds for record in records for seconds in record.lookers
    )
    found = {
        "audits": mean(sum(record.seat_fees) for record in records),
        "looks": float(looked) * look_fee + float(draws) * draw_fee,
        "gas and draw": draw_fee + float(setting.gas_price) * _uncounted(records),
        "capital": _capital(
            _expected(records, lambda record: record.stake + record.delay_penalty + record.escrow)
            + made.seat_lock * locked / float(setting.utilisation)
        ),
    }
    found["all"] = sum(found.values())
    row = ROLLUP.price(BUDGET, TRAINING_DAYS)
    return [
        Part(name, 100 * amount / (BUDGET * TOKEN), 100 * row.share(*PARTS[name]))
        for name, amount in found.items()
    ]


def duties(records: Sequence[Record]) -> list[Duty]:
    """Mean gas per task, seat, look and draw. Verifiers' calls that belong to no look and no draw count as
    calls of seats, except those that a verifier makes only once.
    """

    def per(calls: Callable[[str, str], bool], each: int) -> float:
        found = (
            sum(gas)
            for record in records
            for party, made in record.gas.items()
            for call, gas in made.items()
            if calls(party, call)
        )
        return sum(found) / each

    def seats(party: str, call: str) -> bool:
        return party == "verifier" and call not in DRAWS | LOOKS | ONCE

    made, setting = amounts(), ROLLUP.setting(BUDGET, TRAINING_DAYS)
    counts = [sum(map(len, each)) for each in zip(*((r.seats, r.lookers, r.draw_fees) for r in records))]
    seat = GAS.seat + UNPAID_SEAT + LAST_SEAT / made.verifiers
    return [
        Duty(
            "task", per(lambda party, call: party != "verifier" and call not in DRAWS, len(records)), GAS.task
        ),
        Duty("seat", per(seats, counts[0]), seat),
        Duty("look", per(lambda _, call: call in LOOKS, counts[1]), GAS.seat + GAS.reveal + UNPAID_LOOK),
        Duty(
            "draw", per(lambda _, call: call in DRAWS, counts[2]), float(setting.draw_fee / setting.gas_price)
        ),
    ]


def _uncounted(records: Sequence[Record]) -> float:
    """The part of a task's gas that the fees of its seats and looks do not cover."""
    made = amounts()
    looked = float(expected_looks(made.look_chance, made.slots))
    task, seat, look, _ = (duty.measured for duty in duties(records))
    return task + made.verifiers * (seat - GAS.seat) + looked * (look - GAS.seat - GAS.reveal)


def audit_days(records: Sequence[Record]) -> float:
    """Expected days from the submission to the settlement. Raises TooFewTasks."""
    return _expected(records, lambda record: record.seconds) / 86_400


def _expected(records: Sequence[Record], what: Callable[[Record], float]) -> float:
    """A weighted sum of two means: the mean over tasks with looks, and the mean over tasks without looks. The
    weights are the probabilities that a task has looks or has none, which follow from the terms. Raises
    TooFewTasks.
    """
    if lacks := lacking(records):
        raise TooFewTasks(f"expected {lacks}, got none among {len(records)} tasks; play further ones")
    made = amounts()
    none = float((1 - Fraction(made.look_chance, RATE_OF_ALL)) ** made.slots)
    plain = mean(what(record) for record in records if not record.looks)
    looked = mean(what(record) for record in records if record.looks)
    return none * plain + (1 - none) * looked


def _capital(token_seconds: float) -> float:
    return float(capital_cost(RULES.capital_rate, 1, 1)) * token_seconds


def report(records: Sequence[Record], first: Gas) -> dict[str, Any]:
    """The measured values of docs/trust.json; `first` is the gas used before the first task. Raises
    TooFewTasks.
    """
    return {
        "tasks": len(records),
        "looks": sum(record.looks for record in records),
        "budget": BUDGET,
        "days of training": TRAINING_DAYS,
        "days of audit": round(audit_days(records), 3),
        "parts": {part.name: [round(part.measured, 4), round(part.table, 4)] for part in parts(records)},
        "gas": {duty.name: [round(duty.measured), round(duty.counted)] for duty in duties(records)},
        "once": {call: round(mean(gas)) for call, gas in first["verifier"].items() if call in ONCE},
        "calls": _calls(records),
    }


def _calls(records: Sequence[Record]) -> dict[str, dict[str, list[float]]]:
    """For each party and call: the mean number of calls per task, and their mean gas."""
    found: dict[str, dict[str, list[int]]] = {}
    for record in records:
        for party, made in record.gas.items():
            for call, gas in made.items():
                found.setdefault(party, {}).setdefault(call, []).extend(gas)
    return {
        party: {
            call: [round(len(gas) / len(records), 2), round(mean(gas))] for call, gas in sorted(made.items())
        }
        for party, made in sorted(found.items())
    }
