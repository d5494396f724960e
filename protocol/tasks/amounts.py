"""All amounts of a task from its budget, length, times and prices, and what trust in it costs: dispute.md section 8.

Pure: clients and `sim` call the same functions. Amounts are integers in units of the token, times seconds, rates
fractions a year. Every rounding favours deterrence and whoever is to be paid: costs, fees and stakes round up.

B is the budget, K the segments, q those of a seat, V the seats, c = B / K what training a segment costs at most:

    gameCost       gas of a game + 2 replays of a segment, each `replay` c; at least the deployment's floor
    auditFee       `replay` c + a seat's gas / q
    S              S_min(B, G, the price given back) + restitution + R: what a cheater that is its own challenger and
                   submitter gets back is not counted on. More where what a conviction owes, or the bond, asks for it
    R              2 gameCost, at most S / 8
    retrainReward  4 B, at most S / 8, and no more than leaves a quarter of S to burn
    bond           2 (gameCost + the stake's capital while a game lasts), the least that the deployment allows
    seatLock       a seat's fees + a draw's: what its silence costs

q is the one of 1 … min(64, K) at which V q auditFee + S x rate x T is least, T from the submission to the settlement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from math import ceil
from typing import Final

from protocol.errors import AssayError
from protocol.tasks.economics import ONE, Audit, StakeError, minimum_stake
from protocol.tasks.task import MAX_LOCK, MAX_SEAT_SEGMENTS, least_stake

YEAR: Final = 365 * 86_400
"""Seconds."""
RATE_UNIT: Final = 10_000
"""Hundredths of a percent in the whole: the unit of a deployment's `capital_rate`."""
REPLAYS: Final = 2
"""Of a segment by one side of a game: to find the step, and to answer for it."""
GAME_CLOCKS: Final = 2
"""Times of one side that a game lasts: both sides have as much."""
REWARD_COSTS: Final = 2
"""The reward in costs of a game."""
RETRAIN_BUDGETS: Final = 4
"""Most that training a task again is rewarded with, in budgets: the cost of the work may be a budget, the wait for
payment is long, and another may have been faster.
"""


class NoRecommendation(AssayError):
    """A task that no amounts fit under this deployment."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is assumed, and what is wanted. Shares and multiples are exact; a multiple is of the budget."""

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
    """What replaying a segment may cost, a multiple of budget / K."""
    capital_rate: Fraction
    """What capital costs a year."""


@dataclass(frozen=True, slots=True)
class Gas:
    """Gas of the parties' duties."""

    game: int
    """Of a seat that wins a game, and claims what it cost: the side that pays more."""
    defence: int
    """Of the solver in that game."""
    seat: int
    """Of a seat whose segments are as committed."""
    task: int
    """Of submitter and solver, from the post to the settlement."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a task's amounts follow from, beside the rules."""

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

    @property
    def seat_fee(self) -> int:
        """F: what an attested seat is paid."""
        return self.audit_fee * self.segments_per_verifier


@dataclass(frozen=True, slots=True)
class TrustPrice:
    """What a task costs beside the training, when nobody is wrong."""

    audit_fees: int
    """Of all seats."""
    draws_and_gas: int
    """The fee of a draw, and the gas of submitter and solver."""
    stake: int
    """Capital of the stake, from the submission to the settlement."""
    locks: int
    """Capital of the delay penalty while the task is trained, of the seats' locks while it is audited, and of the fees
    in the escrow all the time.
    """

    @property
    def total(self) -> int:
        """All parts."""
        return self.audit_fees + self.draws_and_gas + self.stake + self.locks

    def shares(self, price: int) -> dict[str, Fraction]:
        """Each part, and the total, over a price."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)} | {"total": self.total}
        return {name: Fraction(part, price) for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Capital:
    """What the capital of a task's locks costs each party, exact, in units of the token."""

    stake: Fraction
    """From the submission to the settlement."""
    delay_penalty: Fraction
    """From the bid to the submission."""
    seat: Fraction
    """Of one seat's lock, from the submission to the settlement."""
    escrow: Fraction
    """From the bid to the settlement."""


OPTIONAL: Final = tuple(field.name for field in fields(Amounts))
"""What a submitter may choose itself."""


def derive(setting: Setting, rules: Rules, given: Mapping[str, int] | None = None) -> Amounts:
    """The amounts of a task. What is `given`, by names of `Amounts`, stays as it is, and the rest follows from it;
    nothing here keeps it from breaking a bound of the terms, or from deterring nobody (`deterrent`).

    Raises NoRecommendation where no stake that a lock holds deters, or no bond is both at least its least and at most a
    quarter of the stake.
    """
    given = given or {}
    if "segments_per_verifier" in given:
        return _derived(setting, rules, given, given["segments_per_verifier"])
    found: list[tuple[Fraction, int, Amounts]] = []
    refused = ""
    for q in range(1, min(MAX_SEAT_SEGMENTS, setting.segments) + 1):
        try:
            amounts = _derived(setting, rules, given, q)
        except NoRecommendation as error:
            refused = str(error)
            continue
        found.append((_varying(setting, rules, amounts), q, amounts))
    if not found:
        raise NoRecommendation(refused)
    return min(found, key=lambda each: each[:2])[2]


def deterrent(setting: Setting, rules: Rules, amounts: Amounts) -> int:
    """The least stake with which no number of false segments pays beside these amounts, for every price up to the
    budget and every share of cheaters that are their own challengers and submitters. Raises NoRecommendation where
    these seats never find a false segment.
    """
    return _needed(setting, rules, amounts.verifiers, amounts.segments_per_verifier) + (
        amounts.restitution + amounts.reward
    )


def least_bond(game_cost: int, stake: int, bond_rate: int, game_time: int) -> int:
    """Twice what a lost game can cost the solver, which gets half of the bond: a game lasts as long as both sides have,
    and the stake's capital is locked for so long (contracts/src/libraries/TermsCheck.sol).
    """
    return 2 * (game_cost + _up(stake * bond_rate * GAME_CLOCKS * game_time, RATE_UNIT * YEAR))


def least_seat_lock(seat_fee: int, draw_fee: int) -> int:
    """What a silent account loses, and twice a draw: an informer takes half of a lock, and the other half pays one
    (contracts/src/libraries/TermsCheck.sol).
    """
    return max(seat_fee + draw_fee, 2 * draw_fee)


def trust_price(setting: Setting, rules: Rules, amounts: Amounts) -> TrustPrice:
    """What trust in a task with these amounts costs all parties together, each part rounded up."""
    fees = amounts.verifiers * amounts.seat_fee
    capital = task_capital(
        rules.capital_rate,
        training=setting.training,
        audit=setting.audit,
        stake=amounts.stake,
        delay_penalty=amounts.delay_penalty,
        seat_lock=amounts.seat_lock,
        escrow=fees,
    )
    return TrustPrice(
        audit_fees=fees,
        draws_and_gas=setting.draw_fee + setting.gas_cost(setting.gas.task),
        stake=ceil(capital.stake),
        locks=ceil(capital.delay_penalty + amounts.verifiers * capital.seat + capital.escrow),
    )


def task_capital(
    rate: Fraction, *, training: int, audit: int, stake: int, delay_penalty: int, seat_lock: int, escrow: int
) -> Capital:
    """What the locks of a task cost at `rate` a year; times as in `Setting`. `escrow` is the part of it that is meant:
    the price of trust counts the fees alone, for the price is paid for the training.
    """
    return Capital(
        stake=capital_cost(rate, stake, audit),
        delay_penalty=capital_cost(rate, delay_penalty, training),
        seat=capital_cost(rate, seat_lock, audit),
        escrow=capital_cost(rate, escrow, training + audit),
    )


def capital_cost(rate: Fraction, amount: int, seconds: int) -> Fraction:
    """What it costs to lock an amount for so long, at `rate` a year."""
    return amount * rate * Fraction(seconds, YEAR)


def _derived(setting: Setting, rules: Rules, given: Mapping[str, int], q: int) -> Amounts:
    budget, segments = setting.budget, setting.segments
    replay = rules.replay * budget / segments
    verifiers = given.get("verifiers", rules.verifiers)
    restitution = given.get("restitution", int(rules.restitution * budget))
    fee = given.get("audit_fee", ceil(replay + setting.gas_cost(setting.gas.seat) / Fraction(q)))
    game_cost = given.get(
        "game_cost",
        max(setting.game_floor, setting.gas_cost(setting.gas.game) + ceil(REPLAYS * replay)),
    )
    seats = verifiers * (game_cost + fee * q) + restitution
    if "stake" in given:
        stake = given["stake"]
        _require_room(setting, given, stake, seats, game_cost)
        room = stake - -(-stake // 4) - seats
        reward = given.get("reward", min(REWARD_COSTS * game_cost, stake // 8, room))
    else:
        kept = _needed(setting, rules, verifiers, q) + restitution
        # At most an eighth of what is kept and the reward itself.
        reward = given.get("reward", min(REWARD_COSTS * game_cost, kept // 7))
        owed = max(reward, given.get("retrain_reward", 0)) + seats
        stake = max(kept + reward, least_stake(owed), _covers_bond(setting, game_cost), _covers_given(given))
        if stake > MAX_LOCK:
            raise NoRecommendation(
                f"a task of {segments} segments and a budget of {budget} units: expected a stake of at most {MAX_LOCK} "
                f"units with {q} segments for each of {verifiers} seats, got {stake}; raise verifiers or "
                "segments_per_verifier, or lower the budget"
            )
        room = stake - -(-stake // 4) - seats
    return Amounts(
        stake=stake,
        restitution=restitution,
        reward=reward,
        audit_fee=fee,
        game_cost=game_cost,
        delay_penalty=given.get("delay_penalty", min(int(rules.delay_penalty * budget), stake)),
        verifiers=verifiers,
        segments_per_verifier=q,
        seat_lock=given.get("seat_lock", least_seat_lock(fee * q, setting.draw_fee)),
        bond=given.get("bond", least_bond(game_cost, stake, setting.bond_rate, setting.game_time)),
        retrain_reward=given.get("retrain_reward", min(RETRAIN_BUDGETS * budget, stake // 8, room)),
    )


def _needed(setting: Setting, rules: Rules, verifiers: int, q: int) -> int:
    """S_min with nothing counted on but the stake: where the submitter is the cheater's, the price comes back."""
    budget, segments = setting.budget, setting.segments
    audit = Audit(segments, min(q, segments), verifiers, int(rules.honest_share * ONE))
    try:
        return minimum_stake(audit, budget, ceil(rules.gain * budget), margin=budget)
    except StakeError as error:
        raise NoRecommendation(f"no stake deters: {error}") from error


def _covers_bond(setting: Setting, game_cost: int) -> int:
    """A stake of which a quarter is at least the least bond: 2 (g + ceil(S a / b)) <= floor(S / 4) where
    S (1 / 4 - 2 a / b) >= 2 g + 2 + 3 / 4.
    """
    a, b = setting.bond_rate * GAME_CLOCKS * setting.game_time, RATE_UNIT * YEAR
    if 8 * a >= b:
        raise NoRecommendation(
            f"games of {GAME_CLOCKS * setting.game_time} s: expected their time at {setting.bond_rate / 100:g} % a "
            "year to cost less than an eighth of the stake, for a bond is at most a quarter; choose a shorter clock"
        )
    return _up((8 * game_cost + 11) * b, b - 8 * a)


def _require_room(setting: Setting, given: Mapping[str, int], stake: int, seats: int, game_cost: int) -> None:
    least = least_stake(seats)
    if "bond" not in given:
        least = max(least, _covers_bond(setting, game_cost))
    if stake < least:
        raise NoRecommendation(
            f"a stake of {stake} units: expected at least {least}, for a game that costs a side {game_cost} units, "
            "fees and restitution; give more, or choose a lower game_cost, audit_fee or restitution too"
        )


def _covers_given(given: Mapping[str, int]) -> int:
    """A stake of which the amounts that were chosen are no greater shares than terms allow."""
    shares = {"reward": 8, "retrain_reward": 8, "bond": 4, "delay_penalty": 1}
    return max(share * given.get(name, 0) for name, share in shares.items())


def _varying(setting: Setting, rules: Rules, amounts: Amounts) -> Fraction:
    """What q decides on: all fees, and the stake's capital."""
    return amounts.verifiers * amounts.seat_fee + capital_cost(
        rules.capital_rate, amounts.stake, setting.audit
    )


def _up(numerator: int, denominator: int) -> int:
    """Divide, rounding up."""
    return -(-numerator // denominator)
