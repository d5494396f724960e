"""The cost of trust by a task's size, its duration and its chain: the first table of docs/economics.md.

`protocol.tasks.amounts` computes it from the recommended rules; nothing is simulated. A chain is described by
the settings of a deployment on it: periods, and the prices of gas and of a draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from protocol.chain.duties import LAST_SEAT, UNPAID_LOOK, UNPAID_SEAT
from protocol.chain.parameters import RECOMMENDED, TOKEN
from protocol.chain.recommendation import RULES, gas_units, setting
from protocol.tasks.amounts import Amounts, Setting, TrustPrice, audit_seconds, derive, trust_price
from protocol.tasks.economics import expected_looks
from sim.theory.feeding import fed_bytes, feeding_price

DAY: Final = 86_400
HOUR: Final = 3_600
GWEI: Final = 10**9
SEGMENTS: Final = 60
BUDGETS: Final = (10, 100, 1_000, 10_000, 100_000)
"""The table's budgets in tokens. One token is assumed to be worth a US dollar."""
TRAININGS: Final = (3, 30)
"""The table's durations of a training, in days."""
MEASURED: Final = Path(__file__).parents[1] / "docs" / "trust.json"
"""Measurements by `python -m benchmarks.trust` on a development chain."""
PARTS: Final = {
    "audits": ("audit_fees",),
    "looks": ("looks",),
    "gas and draw": ("draws_and_gas",),
    "capital": ("stake", "locks"),
    "all": (),
}
"""For each column, the fields of `TrustPrice` that it adds up; empty means all fields."""
_SAME: Final = 0.01
"""Tolerance in percent of the budget. The page says that the computed price has changed since the measurement
only if the change is larger than this.
"""
GOAL: Final = Fraction(12, 100)
"""The largest share of the budget that trust should cost, for budgets of at least 1,000 tokens on a rollup."""


@dataclass(frozen=True)
class Trained:
    """A model whose training was measured."""

    state_bytes: int
    steps: int
    """C: steps of a segment."""
    thinning: int
    """w: the recommended thinning of digests."""
    step_seconds: float


_GPT: Final = Trained(130_000_000, 20, 4, 0.99)
"""The GPT of 10.8M parameters on one thread (docs/performance.md: committing and digesting)."""


@dataclass(frozen=True)
class Chain:
    """A deployment's times and prices."""

    name: str
    draw_delay: int
    """Seconds from a submission to its draw. After this time, the chain cannot revert the submission."""
    challenge_period: int
    """Seconds from the draw to the settlement, unless looks delay it: at least one day to attest and two days
    to challenge.
    """
    gas_price: Fraction
    """Price of gas in gwei."""
    draw_fee: int
    """Fee of a draw in token units, at least the cost of its gas."""

    def setting(self, budget: int, days: int, *, looks: bool = True, segments: int = SEGMENTS) -> Setting:
        """The setting of a task with a budget of `budget` tokens and a training of `days` days."""
        parameters = replace(RECOMMENDED, draw_delay=self.draw_delay, draw_fee=self.draw_fee)
        made = setting(
            parameters,
            budget=budget * TOKEN,
            segments=segments,
            training_period=days * DAY,
            challenge_period=self.challenge_period,
            game_time=parameters.max_clock,
            gas_price=gas_units(self.gas_price * GWEI),
        )
        return replace(
            made,
            look_chance=None if looks else 0,
            draw_delay=self.draw_delay,
            attest_period=DAY,
        )

    def price(self, budget: int, days: int, *, looks: bool = True) -> Priced:
        """The price of trust in a task."""
        made = self.setting(budget, days, looks=looks)
        amounts = derive(made, RULES)
        return Priced(made, amounts, trust_price(made, RULES, amounts))


@dataclass(frozen=True)
class Priced:
    """A task's setting, its recommended amounts, and its price of trust."""

    setting: Setting
    amounts: Amounts
    trust: TrustPrice

    def share(self, *parts: str) -> float:
        """The given parts of the price, as a share of the budget. If no parts are given, the share of the
        whole price.
        """
        shares = self.trust.shares(self.setting.budget)
        unpaid = self.setting.gas_price * self.unpaid_gas / self.setting.budget
        shares["draws_and_gas"] += unpaid
        shares["total"] += unpaid
        return float(sum(shares[part] for part in parts or ("total",)))

    @property
    def unpaid_gas(self) -> Fraction:
        """Gas of seats and looks that their fees do not cover."""
        amounts = self.amounts
        seats = Fraction(amounts.verifiers * UNPAID_SEAT)
        if not amounts.look_chance:
            return seats
        return seats + LAST_SEAT + expected_looks(amounts.look_chance, amounts.slots) * UNPAID_LOOK


ROLLUP: Final = Chain("L2", 25 * HOUR, 3 * DAY, Fraction(1, 100), RECOMMENDED.draw_fee)
"""A rollup. Its draw delay is an upper bound on the sequencer's window plus the settlement chain's finality
(audit.md section 1).
"""
SLOW_ROLLUP: Final = replace(ROLLUP, challenge_period=4 * DAY)
MAINNET: Final = Chain("L1", HOUR, 5 * DAY, Fraction(1), 3 * TOKEN // 2)
"""An L1. Its draw fee covers the 330,000 gas of a draw. At 1 gwei and 3,000 tokens per coin, this gas costs
about one token.
"""


def lines() -> Iterator[str]:
    """Markdown lines of the section on the cost of trust in docs/economics.md."""
    yield "## What trust costs"
    yield ""
    yield f"In percent of the budget, at K = {SEGMENTS}, with second looks; a token is taken for a US dollar."
    yield ""
    names = (
        *("chain", "budget", "days of training", *PARTS),
        *("without looks", "look chance", "seat lock"),
    )
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    for chain in (ROLLUP, MAINNET):
        for budget in BUDGETS:
            for days in TRAININGS:
                yield _row(chain, budget, days)
    yield ""
    yield from _assumed()
    yield from measured_lines(json.loads(MEASURED.read_text()))
    yield from fed_lines()


def measured_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines that compare the measurement of `python -m benchmarks.trust` with the price computed for the same
    task and terms.
    """
    shares = {name: found["parts"][name][0] for name in PARTS}
    counted = {name: found["parts"][name][1] for name in PARTS}
    yield from wrap(
        f"**Measured** (`python -m benchmarks.trust`, {found['date']}, commit {found['commit']}, {found['hardware']}): "
        f"{found['tasks']} tasks of {found['budget']:,} tokens on the L2 with {found['days of training']} days of "
        "training, played from the post to the last release by the nodes themselves on a development chain whose clock "
        f"is moved; {found['looks']} looks were drawn. All payments, all gas and all locks are counted, at the table's "
        "prices; how many looks are expected, and how long a lock waits for a seat, is the table's.",
        116,
    )
    yield ""
    yield f"| | {' | '.join(PARTS)} |"
    yield "|---" * (len(PARTS) + 1) + "|"
    yield f"| measured | {' | '.join(f'{share:.3f}' for share in shares.values())} |"
    yield f"| computed by its terms | {' | '.join(f'{share:.3f}' for share in counted.values())} |"
    now = 100 * ROLLUP.price(found["budget"], found["days of training"]).share()
    yield f"| ratio | {' | '.join(f'{shares[name] / counted[name]:.3f}' for name in PARTS)} |"
    yield ""
    if abs(now - counted["all"]) > _SAME:
        yield from wrap(
            f"Recommended terms have changed since that was measured: for all, where {counted['all']:.2f} was computed "
            f"by the terms that were played, it is {now:.2f} by the terms of now.",
            116,
        )
        yield ""
    gas = found["gas"]
    once = ", ".join(f"{call} {took:,}" for call, took in found["once"].items())
    yield from wrap(
        f"Gas, measured and counted: of submitter and solver {_beside(gas['task'])} a task; of a seat "
        f"{_beside(gas['seat'])}; of a look and what it looks at {_beside(gas['look'])}; of a draw {gas['draw'][0]:,}, "
        f"for which the fee pays {gas['draw'][1]:,}. Once an account, not in the price: {once}. From the submission to "
        f"the settlement it took {found['days of audit']:.2f} days on average.",
        116,
    )
    yield ""


def _beside(figures: Sequence[int]) -> str:
    return " and ".join(f"{figure:,}" for figure in figures)


def fed_lines() -> Iterator[str]:
    """The cost of feeding a seat, for a measured model."""
    fed = float(fed_bytes(_GPT.state_bytes, _GPT.steps, _GPT.thinning)) / 1e9
    replay = _GPT.steps * _GPT.step_seconds
    price = float(feeding_price(replay / HOUR, _GPT.state_bytes, _GPT.steps, _GPT.thinning)) * 1e9
    yield from wrap(
        "**Fed seats**: a solver that feeds a seat every state that the seat hashes sends (C + 1) b / w bytes a "
        "segment, b those of a state. For the GPT of 10.8M parameters "
        f"(b = {_GPT.state_bytes / 1e6:.0f} MB, C = {_GPT.steps}, w = {_GPT.thinning}) that is {fed:.2f} GB, "
        f"beside {replay:.0f} s of replay on one core (docs/performance.md). "
        f"At one token an hour for the machine, feeding is cheaper where a GB costs less than {price:.4f} tokens. So "
        "volume proves nothing where traffic is paid by the month, and fed seats are among the 1 - h.",
        116,
    )
    yield ""


def _row(chain: Chain, budget: int, days: int) -> str:
    priced, plain = chain.price(budget, days), chain.price(budget, days, looks=False)
    cells = [f"{100 * priced.share(*part):.2f}" for part in PARTS.values()]
    amounts = priced.amounts
    lock = amounts.seat_lock / priced.setting.budget
    return (
        f"| {chain.name} | {budget:,} | {days} | {' | '.join(cells)} | {100 * plain.share():.2f} "
        f"| {amounts.look_chance / 100:g}% | {lock:.2f} budgets |"
    )


def _assumed() -> Iterator[str]:
    """The table's assumptions, and whether the price meets its goal."""
    for paragraph in (_replaying(), _parts(), _goal()):
        yield from wrap(paragraph, 116)
        yield ""


def _replaying() -> str:
    return (
        f"**Who replays**: a share h = {float(RULES.honest_share):g} of the stake replays every seat and every look "
        "that it is drawn for; all others skip whatever does not cost them more than it saves. A false result is worth "
        f"{float(RULES.gain):g} budget to its maker. Of a lost lock half alone counts, for who is caught may be its "
        "own looker."
    )


def _parts() -> str:
    utilisation = float(ROLLUP.setting(1_000, 3).utilisation)
    return (
        "Audits are the fees of the seats, looks those of the looks that are expected, and of their draws. Capital "
        f"costs {float(RULES.capital_rate):.0%} a year: of the stake, the delay penalty, fees in escrow, and the locks "
        f"of seats and looks, which have a seat {utilisation:.0%} of the time and wait for one in the rest of it. From "
        f"the submission to the settlement it takes {_days(ROLLUP)} days on the L2 and {_days(MAINNET)} on the L1 on "
        f"average: a draw waits for {ROLLUP.draw_delay / HOUR:g} hours and for {MAINNET.draw_delay / HOUR:g}, the "
        f"challenge period takes {ROLLUP.challenge_period / DAY:g} and {MAINNET.challenge_period / DAY:g} days, and "
        "looks put its end off; seats and looks attest in half of a day. Gas is all of the submitter's and the "
        "solver's, and what seats and looks send beyond what their fees count; drawers are paid by draw fees. It is at "
        f"{float(ROLLUP.gas_price):g} and {float(MAINNET.gas_price):g} gwei."
    )


def _goal() -> str:
    worst = max(ROLLUP.price(budget, days).share() for budget in BUDGETS[2:] for days in TRAININGS)
    slow = [SLOW_ROLLUP.price(1_000, days).share() for days in TRAININGS]
    met = "is met" if worst <= float(GOAL) else "is missed"
    return (
        f"The goal of at most {float(GOAL):.0%} from 1,000 tokens on an L2 {met}: {worst:.1%} at most. It is tight: "
        f"with a challenge period of {SLOW_ROLLUP.challenge_period / DAY:g} days, in place of "
        f"{ROLLUP.challenge_period / DAY:g}, the least that the recommended deployment takes, it would be "
        f"{slow[0]:.1%} for trainings of {TRAININGS[0]} days and {slow[1]:.1%} for those of {TRAININGS[1]}."
    )


def _days(chain: Chain) -> str:
    priced = chain.price(1_000, TRAININGS[0])
    seconds = audit_seconds(priced.setting, priced.amounts.look_chance, priced.amounts.slots)
    return f"{float(seconds) / DAY:.2f}"
