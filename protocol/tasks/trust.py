"""The cost of trust in a task, computed from the rules, the setting and the amounts (audit.md section 9).

Pure. Amounts are integers in token units, and times are seconds. Rates are yearly and given as fractions,
unless stated otherwise. Costs of capital are exact fractions, because nobody is paid a cost of capital.
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
"""A year in seconds."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Assumptions and goals. Shares and multiples are exact fractions."""

    honest_share: Fraction
    """h: honest share of the verifiers' stake."""
    gain: Fraction
    """G: value of a false result to its maker, as a multiple of the budget."""
    verifiers: int
    """V: number of seats."""
    restitution: Fraction
    """Restitution as a multiple of the budget, at most 1."""
    delay_penalty: Fraction
    """Delay penalty as a multiple of the budget."""
    replay: Fraction
    """The cost of replaying a segment, as a multiple of budget / K."""
    capital_rate: Fraction
    """Yearly cost of capital, as a fraction."""


@dataclass(frozen=True, slots=True)
class Gas:
    """Gas of the parties' duties."""

    game: int
    """Gas of a seat that wins a game and claims the game's cost. It is more than the solver's gas (`defence`)."""
    defence: int
    """Gas of the solver in a game that a seat wins against it."""
    seat: int
    """Gas of a seat whose replayed segments equal those that the solver committed to."""
    task: int
    """Gas of submitter and solver, from the post to the settlement."""
    reveal: int
    """Additional gas of a seat that opens its digest for a look."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Figures of a task and its deployment. The amounts follow from these figures and the rules."""

    budget: int
    segments: int
    training: int
    """Maximum seconds from the bid to the submission."""
    audit: int
    """T: seconds from the submission to the settlement, without a dispute and without looks."""
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
    """The terms' chance of a look. None means the chance at which looks and locks cost least."""
    draw_delay: int = 0
    """Seconds from the request of a draw until its random word is known. Used only with looks, whose draws
    prolong an audit.
    """
    attest_period: int = 0
    """Seconds within which a seat or look must attest. Attesting is assumed to take half of this time."""
    jurors: int = 0
    """Number of jurors. If it is not 0, a claim may take a share of the stake."""
    utilisation: Fraction = Fraction(3, 10)
    """Share of the time for which tokens reserved for a lock are actually locked. Used only with looks.
    Without looks, the time in which the tokens wait is not counted, because a lock is only about as large as
    a seat's pay.
    """

    def gas_cost(self, gas: int) -> int:
        """The cost of an amount of gas, rounded up. The cost is in token units."""
        return ceil(gas * self.gas_price)


@dataclass(frozen=True, slots=True)
class Amounts:
    """A task's amounts, numbers and chance of looks, with the same names as in `protocol.tasks.task.Terms`."""

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
    """e, in hundredths of a percent; 0 means no second looks."""

    @property
    def seat_fee(self) -> int:
        """F: the pay of an attested seat."""
        return self.audit_fee * self.segments_per_verifier

    @property
    def slots(self) -> int:
        """V q: the segments of all seats, from which looks are picked."""
        return self.verifiers * self.segments_per_verifier

    def terms(self) -> dict[str, int]:
        """The values that are fields of the terms, by name."""
        known = Terms.__dataclass_fields__
        return {name: value for name, value in asdict(self).items() if name in known}


@dataclass(frozen=True, slots=True)
class TrustPrice:
    """The cost of a task in addition to the training, if all parties behave correctly."""

    audit_fees: int
    """Fees of all seats."""
    looks: int
    """The fees of the expected looks and of their draws."""
    draws_and_gas: int
    """The fee of a draw, and the gas of submitter and solver."""
    stake: int
    """Capital cost of the stake from the submission to the settlement; looks delay the settlement."""
    locks: int
    """Capital cost of the delay penalty during training, of the seats' locks during the audit, and of the
    fees in the escrow for the whole time. With looks, two costs are added. One is the capital cost of the
    looks' locks, which are assumed to last as long as the seats' locks. The other is the capital cost of the
    tokens for the locks of seats and looks while these tokens wait for a seat.
    """

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.audit_fees + self.looks + self.draws_and_gas + self.stake + self.locks

    def shares(self, price: int) -> dict[str, Fraction]:
        """Each part and the total as a share of a price."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)} | {"total": self.total}
        return {name: Fraction(part, price) for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Capital:
    """The exact capital cost of each of a task's locks, in token units."""

    stake: Fraction
    """Cost of the stake from the submission to the settlement."""
    delay_penalty: Fraction
    """Cost of the delay penalty from the bid to the submission."""
    seat: Fraction
    """Cost of one seat's lock from the submission to the settlement."""
    escrow: Fraction
    """Cost of the escrow from the bid to the settlement."""


def trust_price(setting: Setting, rules: Rules, amounts: Amounts) -> TrustPrice:
    """The cost of trust in a task with these amounts, for all parties together, each part rounded up."""
    fees = amounts.verifiers * amounts.seat_fee
    capital = task_capital(
        rules.capital_rate,
        training=setting.training,
        audit=audit_seconds(setting, amounts.look_chance, amounts.slots),
        stake=amounts.stake,
        delay_penalty=amounts.delay_penalty,
        seat_lock=amounts.seat_lock,
        # With looks, the escrow also holds the fees of V q looks.
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
    """The exact fees of the expected looks and of their draws."""
    looks = expected_looks(amounts.look_chance, amounts.slots)
    return looks * amounts.audit_fee + setting.draw_fee * expected_look_draws(
        amounts.look_chance, amounts.slots
    )


def audit_seconds(setting: Setting, look_chance: int, slots: int) -> Fraction:
    """Mean seconds from the submission to the settlement without a dispute; `slots` is V q.

    P is the attestation period, and a = P / 2 is the time that attesting takes. d is the delay of a draw, and
    e is the chance of a look. Level n of looks is drawn n (a + d) after the first draw. It has looks with
    chance 1 - (1 - e^n)^(V q). The challenge window begins P after the draw of the last level that had looks,
    when the newest attestations are due. If the next level was drawn and none of its looks was picked, the
    window begins no earlier than that draw (TaskMarket.drawn).
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
    """The exact capital cost of the locks of seats and looks. With looks, it also includes the capital cost
    of the tokens for these locks during the time in which the tokens are not locked and wait for a seat.
    """
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
    """The capital cost of a task's locks at `rate` a year. Times are as in `Setting`. `escrow` is the part of
    the escrow whose capital cost is counted. For the price of trust, this part is only the fees, because the
    price of the task pays for the training.
    """
    return Capital(
        stake=capital_cost(rate, stake, audit),
        delay_penalty=capital_cost(rate, delay_penalty, training),
        seat=capital_cost(rate, seat_lock, audit),
        escrow=capital_cost(rate, escrow, training + audit),
    )


def capital_cost(rate: Fraction, amount: int, seconds: int | Fraction) -> Fraction:
    """The cost of locking an amount for `seconds`, at `rate` a year."""
    return amount * rate * Fraction(seconds) / YEAR
