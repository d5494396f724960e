"""Closed forms behind the recommended terms: their safety margins and costs.

This is not a study: `sim.studies.recommended` appends these findings to its own. All sentences are computed
from protocol.tasks.amounts, sim.theory and the recommended file; nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES
from sim.parameters import MarketParameters
from sim.recommendation import recommended, trust
from sim.studies.study import Finding
from sim.theory import (
    least_audits,
    least_bond,
    stake_multiple,
    waiting_cost,
)
from sim.units import TOKEN

_BUDGET: Final = MarketParameters().budget
_BUDGET_UNITS: Final = _BUDGET * CHAIN_TOKEN // TOKEN
"""The budget in the chain's units."""
_SHORT: Final = 5
"""Number of segments of the shortest tasks shown."""
_LONG: Final = 1_000
"""Number of segments of the longest tasks shown."""
_REFERENCE: Final = 60
"""Number of segments of the task whose costs and deterrence rule are shown."""


def margins() -> list[Finding]:
    """Findings of theory about the recommended terms."""
    return [explosion(), reach(), audits(), reward(), bond()]


def explosion() -> Finding:
    """A finding on the least stake for a fixed number of audits. It depends on K, the task's number of segments."""
    from sim.figures import Line, lines

    sizes = np.unique(np.geomspace(5, 1000, 40).astype(int))
    stakes = np.array([_multiple(int(size), 4) for size in sizes])
    first, last = _multiple(100, 4), _multiple(1000, 4)
    sentence = (
        f"With {RULES.verifiers} seats of 4 segments each the least stake grows with the task's length: "
        f"{first:,.1f} prices at K = 100, {last:,.0f} at K = 1000"
    )
    return Finding(
        sentence,
        lines(
            [Line("", sizes, stakes)],
            x="K: segments of a task",
            y="least stake, prices",
            log_x=True,
            log_y=True,
        ),
    )


def reach() -> Finding:
    """A finding on the least honest share with which the recommended terms still deter cheating. It depends
    on K, the task's number of segments.
    """
    from sim.figures import Line, lines

    sizes = np.unique(np.geomspace(_SHORT, _LONG, 25).astype(int))
    series, worst = [], {}
    for gain in (1, 2):
        shares = np.array([_least_honest(int(size), gain) for size in sizes])
        series.append(Line(f"gain {gain} budgets", sizes, shares))
        worst[gain] = float(shares.max())
    sentence = (
        f"The recommended terms stand an honest share down to {worst[1]:.0%}, and to {_words(worst[2])} when a false "
        f"result is worth 2 budgets"
    )
    return Finding(
        sentence, lines(series, x="K: segments of a task", y="least honest share", log_x=True, level=0.5)
    )


def audits() -> Finding:
    """A finding on the cost of trust as a multiple of the budget: in total, and for the seats' fees alone.
    Both depend on K, the task's number of segments.
    """
    from sim.figures import Line, lines

    sizes = np.unique(np.geomspace(_SHORT, _LONG, 30).astype(int))
    prices = [trust(int(size), _BUDGET_UNITS).shares(_BUDGET_UNITS) for size in sizes]
    total, fees = (np.array([float(each[part]) for each in prices]) for part in ("total", "audit_fees"))
    at = trust(_REFERENCE, _BUDGET_UNITS).shares(_BUDGET_UNITS)
    sentence = (
        f"For a budget of {_BUDGET / TOKEN:g} tokens, without looks: fees, draws, gas and capital cost "
        f"{total.min():.1%} to {total.max():.1%} of the budget from K = {_SHORT} to K = {_LONG:,}, and "
        f"{float(at['total']):.1%} at K = {_REFERENCE}, of which {float(at['audit_fees']):.1%} are audit fees and "
        f"{float(at['stake']):.1%} the stake's capital"
    )
    terms = recommended(_REFERENCE, _BUDGET_UNITS)
    rule = float(
        least_audits(
            segments=_REFERENCE,
            honest=float(RULES.honest_share),
            price=0.0,
            gain=float(RULES.gain),
            stake=_at_risk(_REFERENCE),
        )
    )
    note = (
        f"Deterrence of one false segment, with nothing counted on but the stake, n = K G / (h (S - R)): {rule:.1f} "
        f"audits at K = {_REFERENCE}; the recommended V q is {terms.verifiers * terms.segments_per_verifier}."
    )
    series = [Line("all", sizes, total), Line("audit fees", sizes, fees)]
    return Finding(sentence, lines(series, x="K: segments of a task", y="budgets", log_x=True), note)


class Challenges(NamedTuple):
    """What it costs a seat to prove that a result is false, and what the seat earns by the proof. Both are
    for the default budget, by K, the task's number of segments.
    """

    costs: Mapping[int, float]
    """Cost in tokens by K."""
    pays: Mapping[int, float]
    """By K, the sum of the reward, a game's cost and the seat's fee, in tokens."""
    least: float
    """Smallest ratio of earnings to cost over all K; `most` is the largest."""
    most: float


def challenges() -> Challenges:
    """Costs and earnings of a challenge for several numbers of segments."""
    sizes = [int(size) for size in np.unique(np.geomspace(_SHORT, _LONG, 40).astype(int))]
    costs, pays = {}, {}
    for size in sizes:
        terms = recommended(size, _BUDGET_UNITS)
        costs[size] = _challenge_cost(size, terms.segments_per_verifier)
        pays[size] = (terms.reward + terms.game_cost + terms.seat_fee) / CHAIN_TOKEN
    ratios = [pays[size] / costs[size] for size in sizes]
    return Challenges(costs, pays, min(ratios), max(ratios))


def reward() -> Finding:
    """A finding on a seat's earnings from a conviction, compared with its cost of a challenge."""
    from sim.figures import Line, lines

    found = challenges()
    sizes, costs, pays = list(found.costs), list(found.costs.values()), list(found.pays.values())
    sentence = (
        f"For a budget of {_BUDGET / TOKEN:g} a challenge costs a seat {min(costs):.2g} to {max(costs):.2g} tokens "
        f"(gas and replays), by the task's length; reward, a game's cost and its fee are {found.least:.1f} to "
        f"{found.most:.1f} times that"
    )
    series = [
        Line("cost of a challenge", sizes, np.array(costs)),
        Line("reward, cost and fee", sizes, np.array(pays)),
    ]
    return Finding(sentence, lines(series, x="K: segments of a task", y="tokens", log_x=True, log_y=True))


def bond() -> Finding:
    """A finding on the challenger's bond, compared with what a false challenge costs others."""
    parameters = MarketParameters()
    # Most games end within 30 days. Until then, the stake and the price wait, at 10 % a year.
    held = (parameters.stake + parameters.budget) / TOKEN
    delay = waiting_cost(amount=held, seconds=30 * 86_400, yearly_rate=0.1)
    defence = (
        parameters.gas_defence * parameters.gas_price
        + parameters.replay_cost * parameters.training_cost / TOKEN / parameters.segments
    )
    whole = least_bond(defence=defence, delay=delay, factor=0)
    half = least_bond(defence=defence, delay=delay, factor=0.5)
    given = parameters.bond / TOKEN
    sentence = (
        f"A bond of {given:g} tokens is between the {half:.1f} with which a false challenge harms others by half of "
        f"what it costs, and the {whole:.1f} that would make a solver whole after a game of 30 days"
        if half <= given <= whole
        else f"A bond of {given:g} tokens lies outside of {half:.1f} to {whole:.1f}, the bonds for factors of 0.5 and 0"
    )
    return Finding(sentence)


def _multiple(segments: int, draws: int) -> float:
    return stake_multiple(
        segments=segments,
        segments_per_verifier=draws,
        verifiers=RULES.verifiers,
        honest=float(RULES.honest_share),
        gain_ratio=float(RULES.gain),
    )


def _least_honest(segments: int, gain: float) -> float:
    """The least honest share with which the recommended stake deters cheating. NaN if the stake does not
    deter it even with a share of 1. The share is found by bisection, which works because the least stake
    falls as the honest share rises.

    The price is not counted among the things that a cheater can lose.
    """
    terms, at_risk = recommended(segments, _BUDGET_UNITS), _at_risk(segments)

    def stands(honest: float) -> bool:
        needed = stake_multiple(
            segments=segments,
            segments_per_verifier=terms.segments_per_verifier,
            verifiers=terms.verifiers,
            honest=honest,
            gain_ratio=gain,
        )
        return needed + 1 <= at_risk

    low, high = 0.0, 1.0
    if not stands(high):
        return float("nan")
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def _at_risk(segments: int) -> float:
    """What a cheater loses by a conviction, as a multiple of the budget. This is its stake minus the reward
    and the restitution, because the cheater gets both of these back if it is its own challenger and
    submitter.
    """
    terms = recommended(segments, _BUDGET_UNITS)
    return (terms.stake - terms.reward - terms.restitution) / _BUDGET_UNITS


def _challenge_cost(segments: int, draws: int) -> float:
    """Cost of a challenge in tokens: the game's gas, and the seat's replays."""
    parameters = MarketParameters()
    replays = parameters.replay_cost * parameters.training_cost / TOKEN / segments * draws
    return parameters.gas_dispute * parameters.gas_price + replays


def _words(share: float) -> str:
    return f"{share:.0%}" if share == share else "no share"
