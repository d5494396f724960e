"""Derives two things for a given deployment: the terms that a task file leaves out, and the cost of trust
under the task's terms.

By default, amounts are derived from twice the chain's gas price, but from at least the assumed price. The
doubled price is rounded up to one digit. Small changes of the gas price therefore seldom change the terms. A
derived budget is rounded up to two digits. A repeated command looks for terms that were already sent
(`assay.posting`). It compares only the terms that are not derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final

from assay.budgeting import Sold, budget_of
from assay.description import Plan
from protocol.chain.parameters import Parameters
from protocol.chain.periods import NAMES, Load, periods
from protocol.chain.recommendation import (
    COIN_PRICE,
    GAS_PRICE,
    RULES,
    default_jurors,
    gas_units,
    move_time,
    setting,
)
from protocol.node.words import amount, duration
from protocol.tasks import usual_solver
from protocol.tasks.amounts import (
    OPTIONAL,
    Amounts,
    NoRecommendation,
    Setting,
    TrustPrice,
    derive,
    deterrent,
    deterrent_lock,
    trust_price,
)
from protocol.tasks.arithmetics import ARITHMETIC
from protocol.tasks.floor import least_price
from protocol.tasks.offers import Figures
from protocol.tasks.owed import Traces
from protocol.tasks.task import AMOUNTS, INCLUSION_BLOCKS, Terms, replay_allowance

ROUNDS: Final = 100
"""Maximum number of rounds in which terms are adjusted. It exceeds the number of segments that a seat may
have. If the budget still grows after so many rounds, nobody would accept the task.
"""
GWEI: Final = 10**9


@dataclass(frozen=True)
class Place:
    """Where a task would be posted: the deployment's fixed parameters, the chain's pace, and prices."""

    parameters: Parameters
    gas_price: Fraction = GAS_PRICE
    """The gas price from which amounts are derived, in wei per gas."""
    coin_price: Fraction = COIN_PRICE
    """The price, in tokens, of one coin of the chain."""
    arithmetic: int = ARITHMETIC
    block_time: float = 1.0
    """Seconds between two blocks. The default is a development chain's, used when no chain is reachable."""
    present_gas_price: Fraction | None = None
    """The gas price that the chain's node reports now, in wei per gas; None if no chain is reachable."""

    @classmethod
    def at(
        cls,
        parameters: Parameters,
        gas_gwei: Decimal | None,
        coin_price: Decimal | None,
        arithmetic: int = ARITHMETIC,
        block_time: float = 1.0,
        present: int | None = None,
    ) -> Place:
        """A place with the prices from the settings. The default gas price is twice the chain's `present`
        price, rounded up to one digit, but at least the assumed price.
        """
        now = None if present is None else Fraction(present)
        if gas_gwei is not None:
            gas_price = Fraction(gas_gwei) * GWEI
        else:
            gas_price = GAS_PRICE if present is None else max(GAS_PRICE, Fraction(_one_digit(2 * present)))
        coin = COIN_PRICE if coin_price is None else Fraction(coin_price)
        return cls(parameters, gas_price, coin, arithmetic, block_time, now)

    @property
    def usual_solver(self) -> Figures:
        """The figures of a solver with default settings at this place."""
        gas = self.gas_price if self.present_gas_price is None else self.present_gas_price
        inclusion = INCLUSION_BLOCKS * self.block_time
        return usual_solver.figures(gas_units(gas, self.coin_price), inclusion, self.parameters.draw_delay)


@dataclass(frozen=True)
class Derived:
    """The market terms of a task: those that its file gives, and the derived ones."""

    description: Plan
    place: Place
    periods: Mapping[str, int]
    """Seconds of each period, by its name in `protocol.chain.periods.NAMES`."""
    setting: Setting
    amounts: Amounts
    segments_reckoned: int = 1
    """The number of segments per seat for which the periods leave time."""
    traces: Traces = field(default_factory=Traces)
    """The work that a game of the task takes in addition to replays."""

    @classmethod
    def of(cls, description: Plan, place: Place, load: Load, sold: Sequence[Sold] = ()) -> Derived:
        """Derive the terms of a task that puts this `load` on its parties. If the file gives no budget, the
        budget depends on `sold`, the tasks that were sold earlier. Raises NoRecommendation.

        The periods depend on the number of segments per seat, this number depends on the periods and the
        budget, and a derived budget depends on both the periods and the number. So the number and the budget
        start low and grow until nothing changes.
        """
        given = description.terms.fields()
        found = _derived(description, place, load, 1, given.get("budget") or _first_budget(place, load, sold))
        for _ in range(ROUNDS):
            size = max(found.segments_reckoned, found.amounts.segments_per_verifier)
            budget = given.get("budget") or max(found.budget, found.asked(load, sold))
            if (size, budget) == (found.segments_reckoned, found.budget):
                break
            found = _derived(description, place, load, size, budget)
        return found

    @property
    def budget(self) -> int:
        """The budget in token units."""
        return self.setting.budget

    def asked(self, load: Load, sold: Sequence[Sold]) -> int:
        """The default budget under these terms. It follows from the least price of a solver with default
        settings, and from `sold`, the tasks that were sold earlier.
        """
        figures = self.place.usual_solver
        least = least_price(
            load.operations / figures.rates.operations,
            figures.costs,
            stake=self.amounts.stake,
            delay_penalty=self.amounts.delay_penalty,
            bidding=self.periods["bidding_period"],
            audit=self.setting.audit,
        )
        return budget_of(least.price, load.operations, sold)

    NAMES: ClassVar = ("move_time", "jurors", "replay_allowance", "budget", *NAMES, *OPTIONAL)
    """Terms that are derived if the file does not give them."""

    def terms(self) -> dict[str, int]:
        """The market fields of `Terms`. The thinning is included only if the file gives it."""
        attest = self.periods["attest_period"]
        return {
            "move_time": move_time(self.place.parameters, attest),
            "jurors": self.jurors,
            "replay_allowance": self.setting.game_time - self.periods["clock"],
            **self.description.terms.fields(),
            **self.periods,
            "budget": self.budget,
            **self.amounts.terms(),
        }

    def usual_solver(self, terms: Terms) -> Figures:
        """The figures of a solver with default settings that has read the bundle of this task. `terms` are
        the task's terms.
        """
        return replace(self.place.usual_solver, traces={terms.program_id: self.traces})

    @property
    def jurors(self) -> int:
        """The number of jurors: the file's, or the deployment's default."""
        given = self.description.terms.jurors
        return default_jurors(self.place.parameters) if given is None else given

    @property
    def trust(self) -> TrustPrice:
        """The parts of the cost of trust in the task's result."""
        return trust_price(self.setting, RULES, self.amounts)

    def lines(self) -> list[str]:
        """The terms in words: the derived terms, the cost of trust, and a note if the stake or the seat lock
        is too low to deter.
        """
        given = self.description.terms.fields()
        derived = {"budget": self.budget, **self.periods, **asdict(self.amounts)}
        found = {
            name: value
            for name, value in derived.items()
            if name not in given and (name != "look_chance" or value)
        }
        shares = {
            name: f"{100 * float(share):.3g} %" for name, share in self.trust.shares(self.budget).items()
        }
        looks = f"looks {shares['looks']}, " if self.amounts.look_chance else ""
        audited = (
            "" if self.amounts.look_chance and self.jurors else "; no audit guarantee: " + self._unguarded()
        )
        lines = [
            f"trust costs {shares['total']} of the budget: audit fees {shares['audit_fees']}, {looks}draws and gas "
            f"{shares['draws_and_gas']}, capital of the stake {shares['stake']}, of locks {shares['locks']} "
            f"(capital at {float(100 * RULES.capital_rate):g} % a year, gas at {float(self.place.gas_price / GWEI):g} "
            f"gwei, {float(self.place.coin_price):g} tokens for a coin){audited}"
        ]
        if found:
            shown = ", ".join(f"{name} {_shown(name, value)}" for name, value in found.items())
            segments = f"{self.description.task.segments} segments"
            what = f"{segments} and this budget" if "budget" in given else segments
            lines.insert(0, f"derived for {what}: {shown}")
        return lines + self._doubts()

    def report(self) -> dict[str, Any]:
        """The price of trust for JSON: its parts and total in token units, and the total as a share of the
        budget.
        """
        trust = self.trust
        share = float(trust.shares(self.setting.budget)["total"])
        return {**asdict(trust), "total": trust.total, "share_of_budget": share}

    def _unguarded(self) -> str:
        """The risks that remain because the task has no looks or no jury, in words."""
        unseen = "seats that replay nothing are paid" if not self.amounts.look_chance else ""
        withheld = "data withheld from honest seats come before no jury" if not self.jurors else ""
        return ", ".join(filter(None, (unseen, withheld)))

    def _doubts(self) -> list[str]:
        amounts = self.amounts
        try:
            stake, lock = deterrent(self.setting, RULES, amounts), deterrent_lock(RULES, amounts)
        except NoRecommendation as error:
            return [f"note: {error}"]
        doubts = []
        if amounts.stake < stake:
            doubts.append(
                f"note: a stake of {_shown('stake', amounts.stake)} deters no solver to whom a false result is worth "
                f"{float(RULES.gain):g} budgets; with these seats it takes {_shown('stake', stake)}"
            )
        if amounts.seat_lock < lock:
            doubts.append(
                f"note: a seat lock of {_shown('seat_lock', amounts.seat_lock)} deters no seat from attesting without "
                f"a replay; with a look chance of {amounts.look_chance / 100:g} % it takes {_shown('seat_lock', lock)}"
            )
        return doubts


def _first_budget(place: Place, load: Load, sold: Sequence[Sold]) -> int:
    """A first estimate of the budget. It follows from the tasks `sold`, and from the least price of a solver
    with default settings, as if the solver's locks cost nothing.
    """
    figures = place.usual_solver
    needed = load.operations / figures.rates.operations
    least = least_price(needed, figures.costs, stake=0, delay_penalty=0, bidding=0.0, audit=0.0)
    return budget_of(least.price, load.operations, sold)


def _derived(description: Plan, place: Place, load: Load, size: int, budget: int) -> Derived:
    """All terms for this budget. The periods are for seats of `size` segments, unless the file gives the
    number of segments per seat.
    """
    given, parameters = description.terms.fields(), place.parameters
    jurors = given.get("jurors", default_jurors(parameters))
    verifiers, size = given.get("verifiers", RULES.verifiers), given.get("segments_per_verifier", size)
    # Seat lock and look chance are derived together: a file with a lock gets looks only if it gives a chance.
    chooses_looks = bool(default_jurors(parameters)) and "seat_lock" not in given
    times = periods(
        load,
        parameters,
        place.block_time,
        segments_per_verifier=size,
        copies=max(verifiers * size, jurors),
        looks=bool(given.get("look_chance", chooses_looks)),
        given=given,
    )
    allowance = replay_allowance(load.segment_steps, load.step_operations, load.state_bytes)
    made = setting(
        parameters,
        budget=budget,
        segments=load.segments,
        training_period=times["training_period"],
        challenge_period=times["challenge_period"],
        game_time=times["clock"] + given.get("replay_allowance", allowance),
        gas_price=gas_units(place.gas_price, place.coin_price),
        attest_period=times["attest_period"],
        jurors=jurors,
    )
    if chooses_looks:
        made = replace(made, look_chance=None)
    chosen = {name: value for name, value in given.items() if name in OPTIONAL}
    return Derived(description, place, times, made, derive(made, RULES, chosen), size, load.traces)


def _one_digit(amount: int) -> int:
    """Round up to one significant digit."""
    unit: int = 10 ** max(0, len(str(amount)) - 1)
    return -(-amount // unit) * unit


def _shown(name: str, value: int) -> str:
    if name in AMOUNTS:
        return amount(value)
    return duration(value) if name in NAMES else str(value)
