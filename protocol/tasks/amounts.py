"""Derives all amounts of a task from its budget, length, times and prices: audit.md section 9.

Pure: clients and `sim` call the same functions. Amounts are integers in units of the token, and times are
seconds. Rates are per year. They are fractions, except a deployment's rate, which is in hundredths of a
percent. Costs, fees, bonds, locks and stakes are rounded up, which favours deterrence and the payee.

B is the budget, G what a false result is worth to a cheater, K the number of segments, q the number of
segments of a seat, V the number of seats, and h the honest share of the verifiers' stake. S is the stake, and
R the reward. e is the chance of a second look. c = B / K is the most that training one segment costs, and
`replay` x c is the cost of a replay of a segment. The amounts are:

    gameCost       gas of a game + 2 x `replay` x c; at least the deployment's floor
    auditFee       `replay` x c + a seat's gas / q
    S              S_min(B, G) + B + restitution + max(R, retrainReward). The parts after S_min are what a
                   cheater gets back if it is its own submitter (price and restitution) and its own
                   challenger or retrainer (a reward). S is larger if the sum that a conviction owes, the
                   bond, or a jury's share requires it
    R              2 x gameCost, at most S / 8
    retrainReward  3 x B, at most S / 8. If the stake is given, R and retrainReward must leave a quarter
                   of the stake to burn
    bond           2 x (gameCost + the capital cost of the stake during a game). The contracts allow no less
    seatLock       a seat's fees + the fee of a draw, which a silent seat loses; at least two draw fees
    lookChance     e, which is 0 without second looks

The varying cost is V q auditFee + S x rate x T, where T is the time from the submission to the settlement. Of
the values 1 … min(64, K), q is the one for which the varying cost is least.

With second looks, e is above 0. A looker replays one segment and attests alone, and a seat may have to
reveal. Two amounts then differ:

    auditFee       `replay` x c + a seat's gas + e x gas of a reveal
    seatLock       more than 2 q auditFee / (h (1 - (1 - e)^q)), so that skipping does not pay, and at least
                   4 x gameCost

q and e are then chosen together, so that the sum of three costs is least: the varying cost, the cost of the
looks, and the capital cost of all locks (including the time that they wait for a seat). V q is at most 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

from protocol.dispute.looks import MAX_LOOKS
from protocol.errors import AssayError
from protocol.node.words import amount, duration, tokens
from protocol.tasks.economics import (
    ONE,
    Audit,
    StakeError,
    least_look_lock,
    minimum_stake,
)
from protocol.tasks.task import JURY_SHARE, LOOK_LOCK, MAX_LOCK, MAX_SEAT_SEGMENTS, RATE_OF_ALL, least_stake
from protocol.tasks.trust import (
    YEAR,
    Amounts,
    Capital,
    Gas,
    Rules,
    Setting,
    TrustPrice,
    audit_seconds,
    capital_cost,
    lock_capital,
    look_fees,
    task_capital,
    trust_price,
)

__all__ = [
    "GAME_CLOCKS",
    "LOOK_CHANCES",
    "OPTIONAL",
    "RATE_UNIT",
    "YEAR",
    "Amounts",
    "Capital",
    "Gas",
    "NoRecommendation",
    "Rules",
    "Setting",
    "TrustPrice",
    "audit_seconds",
    "capital_cost",
    "derive",
    "deterrent",
    "deterrent_lock",
    "least_bond",
    "least_seat_lock",
    "lock_capital",
    "look_fees",
    "task_capital",
    "trust_price",
]

RATE_UNIT: Final = 10_000
"""100 %, in hundredths of a percent. A deployment's `capital_rate` has this unit."""
REPLAYS: Final = 2
"""Replays of a segment by one side of a game: one to find the step, one to answer for it."""
GAME_CLOCKS: Final = 2
"""Number of clocks in a game: a game lasts at most the sum of both sides' times."""
REWARD_COSTS: Final = 2
"""Highest reward, as a multiple of the cost of a game."""
RETRAIN_BUDGETS: Final = 3
"""Highest reward for training a task again, as a multiple of the budget. The work may cost a budget, payment
comes late, and another retrainer may be faster. The stake must deter without this reward, because an
accomplice may be the retrainer.
"""
LOOK_CHANCES: Final = tuple(
    100 * percent for percent in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)
)
"""Chances of a look that `derive` compares, in hundredths of a percent. Neighbouring values cost about the
same.
"""


class NoRecommendation(AssayError):
    """No amounts fit the task under this deployment."""


OPTIONAL: Final = tuple(field.name for field in fields(Amounts))
"""Amounts that a submitter may choose."""


def derive(setting: Setting, rules: Rules, given: Mapping[str, int] | None = None) -> Amounts:
    """The amounts of a task. Amounts in `given`, by their names in `Amounts`, are kept, and the others are
    derived from them. Given amounts may violate the terms' bounds or fail to deter (`deterrent`,
    `deterrent_lock`).

    Raises NoRecommendation if no stake up to the vault's limit deters, if a given stake is too small for the
    other amounts, if no lock deters, or if games take too much time for a bond to be between its minimum and
    a quarter of the stake.
    """
    return _cheapest(setting, rules, tuple(sorted((given or {}).items())))


@lru_cache(maxsize=1024)
def _cheapest(setting: Setting, rules: Rules, fixed: tuple[tuple[str, int], ...]) -> Amounts:
    """`derive` with a cache. The studies of `sim` derive the amounts of the same tasks many times, and each
    derivation takes 0.1 s.
    """
    given = dict(fixed)
    found: list[tuple[bool, Fraction, int, int, Amounts]] = []
    refused = ""
    for q, look_chance in _choices(setting, rules, given):
        try:
            amounts = _derived(setting, rules, given, q, look_chance)
        except NoRecommendation as error:
            refused = str(error)
            continue
        # With a given lock, chances at which the lock deters come first.
        short = amounts.seat_lock < deterrent_lock(rules, amounts)
        found.append((short, _varying(setting, rules, amounts), q, look_chance, amounts))
    if not found:
        raise NoRecommendation(refused)
    return min(found, key=lambda each: each[:4])[4]


def deterrent(setting: Setting, rules: Rules, amounts: Amounts) -> int:
    """The least stake with which cheating does not pay, no matter how many segments are false, given the
    other amounts. It deters at every price up to the budget, even if the cheater is its own challenger,
    retrainer or submitter. Raises NoRecommendation if the seats never find a false segment.
    """
    return _needed(setting, rules, amounts.verifiers, amounts.segments_per_verifier) + (
        amounts.restitution + max(amounts.reward, amounts.retrain_reward)
    )


def deterrent_lock(rules: Rules, amounts: Amounts) -> int:
    """The least lock with which skipping a seat's replays does not pay, given the other amounts; 0 without looks.
    Assumes that skipping saves as much as a seat is paid. Raises NoRecommendation if no looker is honest.
    """
    if not amounts.look_chance:
        return 0
    return _look_lock(rules, amounts.seat_fee, amounts.look_chance, amounts.segments_per_verifier)


def least_bond(game_cost: int, stake: int, bond_rate: int, game_time: int) -> int:
    """The least bond: twice the most that a game can cost the solver if the solver wins. The factor is two
    because the challenger then loses the bond, and the solver gets only half of it.

    The cost of a game includes the capital cost of the stake for the time of both sides
    (contracts/src/libraries/TermsCheck.sol).
    """
    return 2 * (game_cost + _up(stake * bond_rate * GAME_CLOCKS * game_time, RATE_UNIT * YEAR))


def least_seat_lock(seat_fee: int, draw_fee: int, game_cost: int = 0, look_chance: int = 0) -> int:
    """The least lock of a seat, the greatest of two or three amounts. The first is a seat's fee plus a draw's
    fee, which a silent account loses. The second is two draw fees, because an informer takes half of a lock
    and the other half pays for a draw. With looks, the third is four times the cost of a game. A looker that
    catches a seat gets half of the lock, and this half must pay for a game and a bond
    (contracts/src/libraries/TermsCheck.sol).
    """
    return max(seat_fee + draw_fee, 2 * draw_fee, LOOK_LOCK * game_cost if look_chance else 0)


def _choices(setting: Setting, rules: Rules, given: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """The pairs (q, chance of a look) that `derive` compares."""
    most = min(MAX_SEAT_SEGMENTS, setting.segments)
    sizes = [given["segments_per_verifier"]] if "segments_per_verifier" in given else range(1, most + 1)
    if "look_chance" in given:
        chances: tuple[int, ...] = (given["look_chance"],)
    else:
        chances = LOOK_CHANCES if setting.look_chance is None else (setting.look_chance,)
    verifiers = given.get("verifiers", rules.verifiers)
    for q in sizes:
        for chance in chances:
            if not chance or verifiers * q <= MAX_LOOKS or "segments_per_verifier" in given:
                yield q, chance


def _derived(setting: Setting, rules: Rules, given: Mapping[str, int], q: int, look_chance: int) -> Amounts:
    budget, segments = setting.budget, setting.segments
    replay = rules.replay * budget / segments
    verifiers = given.get("verifiers", rules.verifiers)
    restitution = given.get("restitution", int(rules.restitution * budget))
    fee = given.get("audit_fee", ceil(replay + _fee_gas(setting, q, look_chance)))
    game_cost = given.get(
        "game_cost",
        max(setting.game_floor, setting.gas_cost(setting.gas.game) + ceil(REPLAYS * replay)),
    )
    seats = verifiers * (game_cost + fee * q) + restitution
    if look_chance:
        seats += verifiers * q * (game_cost + fee)
    if "stake" in given:
        stake = given["stake"]
        _require_room(setting, given, stake, seats, game_cost)
        room = stake - -(-stake // 4) - seats
        reward = given.get("reward", min(REWARD_COSTS * game_cost, stake // 8, room))
        retrain_reward = given.get("retrain_reward", min(RETRAIN_BUDGETS * budget, stake // 8, room))
    else:
        kept = _needed(setting, rules, verifiers, q) + restitution
        # Each at most an eighth of the stake, which is at least `kept` plus this amount.
        reward = given.get("reward", min(REWARD_COSTS * game_cost, kept // 7))
        retrain_reward = given.get("retrain_reward", min(RETRAIN_BUDGETS * budget, kept // 7))
        # Does not count on the reward, which a cheater that is its own challenger or retrainer gets back.
        most = max(reward, retrain_reward)
        stake = max(
            kept + most,
            least_stake(most + seats),
            _covers_bond(setting, game_cost),
            _covers_claim(setting, fee),
            _covers_given(given),
        )
        if stake > MAX_LOCK:
            raise NoRecommendation(
                f"a task of {segments} segments and a budget of {tokens(budget)}: expected a stake of at most "
                f"{tokens(MAX_LOCK)} with {q} segments for each of {verifiers} seats, got {amount(stake)}; raise "
                "verifiers or segments_per_verifier, or lower the budget"
            )
    return Amounts(
        stake=stake,
        restitution=restitution,
        reward=reward,
        audit_fee=fee,
        game_cost=game_cost,
        delay_penalty=given.get("delay_penalty", min(int(rules.delay_penalty * budget), stake)),
        verifiers=verifiers,
        segments_per_verifier=q,
        seat_lock=given.get("seat_lock", _seat_lock(setting, rules, fee * q, q, look_chance, game_cost)),
        bond=given.get("bond", least_bond(game_cost, stake, setting.bond_rate, setting.game_time)),
        retrain_reward=retrain_reward,
        look_chance=look_chance,
    )


def _fee_gas(setting: Setting, q: int, look_chance: int) -> Fraction:
    """The cost of the gas that the audit fee of one segment covers, in token units. Without looks, it is a
    seat's gas / q. With looks, it is all of a seat's gas, because a looker attests one segment alone, plus
    the expected gas of a reveal.
    """
    seat = setting.gas_cost(setting.gas.seat)
    if not look_chance:
        return seat / Fraction(q)
    return seat + Fraction(look_chance, RATE_OF_ALL) * setting.gas_cost(setting.gas.reveal)


def _seat_lock(
    setting: Setting, rules: Rules, seat_fee: int, q: int, look_chance: int, game_cost: int
) -> int:
    least = least_seat_lock(seat_fee, setting.draw_fee, game_cost, look_chance)
    return max(least, _look_lock(rules, seat_fee, look_chance, q)) if look_chance else least


def _look_lock(rules: Rules, saved: int, look_chance: int, q: int) -> int:
    try:
        return least_look_lock(saved, look_chance, q, rules.honest_share)
    except StakeError as error:
        raise NoRecommendation(f"no lock deters: {error}") from error


def _needed(setting: Setting, rules: Rules, verifiers: int, q: int) -> int:
    """S_min plus the budget. A cheater that is also the submitter gets the price back, so only the stake
    deters it.
    """
    budget, segments = setting.budget, setting.segments
    audit = Audit(segments, min(q, segments), verifiers, int(rules.honest_share * ONE))
    try:
        return minimum_stake(audit, budget, ceil(rules.gain * budget), margin=budget)
    except StakeError as error:
        raise NoRecommendation(f"no stake deters: {error}") from error


def _covers_bond(setting: Setting, game_cost: int) -> int:
    """A stake of which a quarter covers the least bond. Because of rounding, a slightly smaller stake may do
    so too. Raises NoRecommendation if games take too much time.

    Let S be the stake, g `game_cost`, and a / b what the stake's capital costs during a game, as a share of
    the stake. Then 2 (g + ceil(S a / b)) <= floor(S / 4) holds if S (1 / 4 - 2 a / b) >= 2 g + 2 + 3 / 4.
    """
    a, b = setting.bond_rate * GAME_CLOCKS * setting.game_time, RATE_UNIT * YEAR
    if 8 * a >= b:
        raise NoRecommendation(
            f"games of {duration(GAME_CLOCKS * setting.game_time)}: expected their time at "
            f"{setting.bond_rate / 100:g} % a year to cost less than an eighth of the stake, for a bond is at most a "
            "quarter; choose a shorter clock"
        )
    return _up((8 * game_cost + 11) * b, b - 8 * a)


def _require_room(setting: Setting, given: Mapping[str, int], stake: int, seats: int, game_cost: int) -> None:
    least = least_stake(seats)
    if "bond" not in given:
        least = max(least, _covers_bond(setting, game_cost))
    if stake < least:
        raise NoRecommendation(
            f"a stake of {tokens(stake)}: expected at least {amount(least)}, for a game that costs a side "
            f"{tokens(game_cost)}, "
            "fees and restitution; give more, or choose a lower game_cost, audit_fee or restitution too"
        )


def _covers_claim(setting: Setting, fee: int) -> int:
    """The least stake whose share for a jury covers the audit fee and the draw fee of a claimant."""
    return JURY_SHARE * (fee + setting.draw_fee) if setting.jurors else 0


def _covers_given(given: Mapping[str, int]) -> int:
    """The least stake with which no given amount exceeds its limit. Terms limit the two rewards, the bond and
    the delay penalty to shares of the stake; other amounts do not count here.
    """
    shares = {"reward": 8, "retrain_reward": 8, "bond": 4, "delay_penalty": 1}
    return max(share * given.get(name, 0) for name, share in shares.items())


def _varying(setting: Setting, rules: Rules, amounts: Amounts) -> Fraction:
    """The cost that `derive` minimises: all fees of seats and the capital cost of the stake; with looks, also
    the fees of looks and the capital cost of locks.
    """
    audit = audit_seconds(setting, amounts.look_chance, amounts.slots)
    varying = amounts.verifiers * amounts.seat_fee + capital_cost(rules.capital_rate, amounts.stake, audit)
    if amounts.look_chance:
        varying += look_fees(setting, amounts) + lock_capital(setting, rules, amounts)
    return varying


def _up(numerator: int, denominator: int) -> int:
    """Divide, rounding up."""
    return -(-numerator // denominator)
