"""The cost of trust in a task, and what it follows from: rules, setting and amounts. audit.md section 9.

Pure. Amounts are integers in token units, times seconds, rates fractions a year; costs that nobody is paid are exact.
`protocol.tasks.amounts` derives the amounts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import ceil
from typing import Final

from protocol.dispute.looks import LEVELS
from protocol.tasks.economics import expected_look_draws, expected_looks
from protocol.tasks.task import RATE_OF_ALL, Terms

YEAR: Final = 365 * 86_400
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Assumptions and goals. Shares and multiples are exact; a multiple is of the budget."""

    honest_share: Fraction
    """h: honest share of the verifiers' stake."""
    gain: Fraction
    """G: worth of a false result to its maker, a multiple."""
    verifiers: int
    """V."""
    restitution: Fraction
    """A multiple, at most 1."""
    delay_penalty: Fraction
    """A multiple."""
    replay: Fraction
    """The cost of replaying a segment, a multiple of budget / K."""
    capital_rate: Fraction
    """Yearly cost of capital."""


@dataclass(frozen=True, slots=True)
class Gas:
    """Gas of the parties' duties."""

    game: int
    """Gas of a seat that wins a game and claims its cost: the side that pays more."""
    defence: int
    """Of the solver in that game."""
    seat: int
    """Gas of a seat whose segments are as committed."""
    task: int
    """Gas of submitter and solver, from the post to the settlement."""
    reveal: int
    """Gas of a seat that is looked at, and opens its digest."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a task's amounts follow from, besides the rules."""

    budget: int
    segments: int
    training: int
    """Seconds from the bid to the submission, at most."""
    audit: int
    """T: seconds from the submission to the settlement without a dispute."""
    game_time: int
    """Seconds that each side of a game has."""
    draw_fee: int
    game_floor: int
    bond_rate: int
    """The deployment's `capital_rate`, in hundredths of a percent a year."""
    gas: Gas
    gas_price: Fraction
    """Units of the token for one gas."""
    look_chance: int | None = 0
    """As in the terms; None: the value at which looks and locks cost least."""
    draw_delay: int = 0
    """Seconds from requesting a draw to its word, by which looks prolong an audit."""
    attest_period: int = 0
    """Seconds that a seat or look has to attest; half of them are assumed to be used."""
    jurors: int = 0
    """Jurors, 0 without a jury: a claim may take a share of the stake."""
    utilisation: Fraction = Fraction(3, 10)
    """Share of the time in which tokens kept for a lock are really locked. It counts where there are looks: otherwise
    a lock is about as large as a seat's pay.
    """

    def gas_cost(self, gas: int) -> int:
        """Units of the token, rounded up."""
        return ceil(gas * self.gas_price)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Terms by their names in `protocol.tasks.task.Terms`."""

    stake: int
    restitution: int
    reward: int
    audit_fee: int
    game_cost: int
    delay_penalty: int
    verifiers: int
    segments_per_verifier: int
    seat_lock: int
    bond: int
    retrain_reward: int
    look_chance: int = 0
    """e, in hundredths of a percent; 0: no second looks."""

    @property
    def seat_fee(self) -> int:
        """F: what an attested seat is paid."""
        return self.audit_fee * self.segments_per_verifier

    @property
    def slots(self) -> int:
        """V q: segments of all seats, which looks are picked from."""
        return self.verifiers * self.segments_per_verifier

    def terms(self) -> dict[str, int]:
        """Those that are fields of the terms."""
        known = Terms.__dataclass_fields__
        return {name: value for name, value in asdict(self).items() if name in known}


@dataclass(frozen=True, slots=True)
class TrustPrice:
    """What a task costs besides the training, if nobody is wrong."""

    audit_fees: int
    """Fees of all seats."""
    looks: int
    """The fees of the expected looks, and of their draws."""
    draws_and_gas: int
    """The fee of a draw, and the gas of submitter and solver."""
    stake: int
    """Capital of the stake, from the submission to the settlement, which looks delay."""
    locks: int
    """Capital of the delay penalty during training, of the seats' locks during the audit, and of the fees in the
    escrow all the time. With looks: also of their locks, assumed to last as long as the seats', and of all these
    while they wait for a seat.
    """

    @property
    def total(self) -> int:
        """All parts."""
        return self.audit_fees + self.looks + self.draws_and_gas + self.stake + self.locks

    def shares(self, price: int) -> dict[str, Fraction]:
        """Each part, and the total, over a price."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)} | {"total": self.total}
        return {name: Fraction(part, price) for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Capital:
    """What the capital of a task's locks costs each party, exact, in units of the token."""

    stake: Fraction
    """Seconds from the submission to the settlement."""
    delay_penalty: Fraction
    """Seconds from the bid to the submission."""
    seat: Fraction
    """Capital of one seat's lock, from the submission to the settlement."""
    escrow: Fraction
    """Seconds from the bid to the settlement."""


def trust_price(setting: Setting, rules: Rules, amounts: Amounts) -> TrustPrice:
    """What trust in a task with these amounts costs all parties together, each part rounded up."""
    fees = amounts.verifiers * amounts.seat_fee
    capital = task_capital(
        rules.capital_rate,
        training=setting.training,
        audit=audit_seconds(setting, amounts.look_chance, amounts.slots),
        stake=amounts.stake,
        delay_penalty=amounts.delay_penalty,
        seat_lock=amounts.seat_lock,
        # The escrow holds the fees of V q looks as well.
        escrow=2 * fees if amounts.look_chance else fees,
    )
    return TrustPrice(
        audit_fees=fees,
        looks=ceil(look_fees(setting, amounts)),
        draws_and_gas=setting.draw_fee + setting.gas_cost(setting.gas.task),
        stake=ceil(capital.stake),
        locks=ceil(capital.delay_penalty + lock_capital(setting, rules, amounts) + capital.escrow),
    )


def look_fees(setting: Setting, amounts: Amounts) -> Fraction:
    """The fees of the expected looks, and of their draws, exact."""
    looks = expected_looks(amounts.look_chance, amounts.slots)
    return looks * amounts.audit_fee + setting.draw_fee * expected_look_draws(
        amounts.look_chance, amounts.slots
    )


def audit_seconds(setting: Setting, look_chance: int, slots: int) -> Fraction:
    """Mean time from the submission to the settlement without a dispute, where `slots` = V q.

    Level n is drawn n (a + d) after the first draw, d the draws' delay and a the time to attest, half of the period P.
    The challenge window that follows the attestations begins when all of the newest stage are due: at the draw of the
    last level that had looks + P, and not before the draw that picked none (TaskMarket.drawn). A level has looks with
    chance 1 - (1 - e^n)^(V q).
    """
    if not look_chance:
        return Fraction(setting.audit)
    step, period = Fraction(setting.attest_period, 2) + setting.draw_delay, setting.attest_period
    chance = Fraction(look_chance, RATE_OF_ALL)
    some = [1 - (1 - chance**level) ** slots for level in range(LEVELS + 1)]
    begins = some[LEVELS] * (LEVELS * step + period)
    for level in range(1, LEVELS + 1):
        begins += (some[level - 1] - some[level]) * max((level - 1) * step + period, level * step)
    return setting.audit + begins - period


def lock_capital(setting: Setting, rules: Rules, amounts: Amounts) -> Fraction:
    """What the locks of seats and looks cost, exact; with looks, their waiting for a seat too."""
    audit = audit_seconds(setting, amounts.look_chance, amounts.slots)
    each = capital_cost(rules.capital_rate, amounts.seat_lock, audit)
    if not amounts.look_chance:
        return amounts.verifiers * each
    return (
        (amounts.verifiers + expected_looks(amounts.look_chance, amounts.slots)) * each / setting.utilisation
    )


def task_capital(
    rate: Fraction,
    *,
    training: int,
    audit: int | Fraction,
    stake: int,
    delay_penalty: int,
    seat_lock: int,
    escrow: int,
) -> Capital:
    """What the locks of a task cost at `rate` a year; times as in `Setting`. `escrow` is the part of the escrow to
    count: the price of trust counts only the fees, because the price pays for the training.
    """
    return Capital(
        stake=capital_cost(rate, stake, audit),
        delay_penalty=capital_cost(rate, delay_penalty, training),
        seat=capital_cost(rate, seat_lock, audit),
        escrow=capital_cost(rate, escrow, training + audit),
    )


def capital_cost(rate: Fraction, amount: int, seconds: int | Fraction) -> Fraction:
    """What it costs to lock an amount for that long, at `rate` a year."""
    return amount * rate * Fraction(seconds) / YEAR
