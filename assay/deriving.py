"""The amounts that a task file leaves out, derived for the deployment that it is for, and what trust in them costs.

The gas price is a setting, and by default assumed: with the chain's own, which moves, a command that was cut short
would not find its task again by its terms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from assay.description import Description
from protocol.chain.parameters import Parameters
from protocol.chain.recommendation import (
    COIN_PRICE,
    GAS_PRICE,
    RULES,
    default_jurors,
    gas_units,
    setting,
)
from protocol.node.words import amount
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
from protocol.tasks.task import AMOUNTS

GWEI: Final = 10**9


@dataclass(frozen=True)
class Place:
    """Where a task is to be posted: what its deployment fixed, and prices."""

    parameters: Parameters
    gas_price: Fraction = GAS_PRICE
    """Wei for one gas."""
    coin_price: Fraction = COIN_PRICE
    """Tokens for one of the chain's coin."""
    arithmetic: int = ARITHMETIC

    @classmethod
    def at(
        cls,
        parameters: Parameters,
        gas_gwei: Decimal | None,
        coin_price: Decimal | None,
        arithmetic: int = ARITHMETIC,
    ) -> Place:
        """With the prices of settings, the assumed ones where there is none."""
        return cls(
            parameters,
            GAS_PRICE if gas_gwei is None else Fraction(gas_gwei) * GWEI,
            COIN_PRICE if coin_price is None else Fraction(coin_price),
            arithmetic,
        )


@dataclass(frozen=True)
class Derived:
    """All amounts of a task, those that its file gives and those that follow."""

    description: Description
    place: Place
    setting: Setting
    amounts: Amounts

    @classmethod
    def of(cls, description: Description, place: Place, allowance: int) -> Derived:
        """For a task whose replays in games are allowed `allowance` seconds, unless its file says otherwise. Raises
        NoRecommendation.
        """
        given, table = description.terms.fields(), description.terms
        made = setting(
            place.parameters,
            budget=given["budget"],
            segments=description.task.segments,
            training_period=table.training_period,
            challenge_period=table.challenge_period,
            game_time=table.clock + given.get("replay_allowance", allowance),
            gas_price=gas_units(place.gas_price, place.coin_price),
            attest_period=table.attest_period,
        )
        chosen = {name: value for name, value in given.items() if name in OPTIONAL}
        # Lock and chance are chosen together, so a file that gives the one asks for looks itself.
        if default_jurors(place.parameters) and "seat_lock" not in chosen:
            made = replace(made, look_chance=None)
        return cls(description, place, made, derive(made, RULES, chosen))

    @property
    def jurors(self) -> int:
        """As the file says, or the deployment's default."""
        given = self.description.terms.jurors
        return default_jurors(self.place.parameters) if given is None else given

    @property
    def trust(self) -> TrustPrice:
        """What trust costs."""
        return trust_price(self.setting, RULES, self.amounts)

    def lines(self) -> list[str]:
        """In words: what the file leaves out, what trust costs, and whether the stake deters."""
        given = self.description.terms.fields()
        found = {
            name: value
            for name, value in asdict(self.amounts).items()
            if name not in given and (name != "look_chance" or value)
        }
        shares = {
            name: f"{100 * float(share):.3g} %" for name, share in self.trust.shares(given["budget"]).items()
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
            lines.insert(0, f"derived for {self.description.task.segments} segments and this budget: {shown}")
        return lines + self._doubts()

    def report(self) -> dict[str, Any]:
        """The price of trust for programs: parts in token units, and all of it over the budget."""
        trust = self.trust
        share = float(trust.shares(self.setting.budget)["total"])
        return {**asdict(trust), "total": trust.total, "share_of_budget": share}

    def _unguarded(self) -> str:
        """What nothing keeps from happening."""
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


def _shown(name: str, value: int) -> str:
    return amount(value) if name in AMOUNTS else str(value)
