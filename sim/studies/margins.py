"""Closed forms behind the recommended terms: how far they reach, what they cost, and what longer tasks do instead.

Not a study: `sim.studies.recommended` shows these findings below what it has played. All sentences are computed from
protocol.tasks.economics, sim.theory and the recommended file; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES, most_segments, recommended_terms
from protocol.tasks.task import MAX_SEAT_SEGMENTS
from sim.parameters import MarketParameters
from sim.studies.study import Finding
from sim.theory import (
    fewest_milestones,
    least_audits,
    least_bond,
    stake_multiple,
    waiting_cost,
)
from sim.units import TOKEN

_BUDGET: Final = MarketParameters().budget
_SHORT: Final = 5
"""Segments of the shortest tasks that are looked at."""
_LONG: Final = (1000, 2000, 5000)
"""Segments of longer tasks."""
_REFERENCE: Final = 60
"""Segments of the task that the rule of deterrence is shown for."""


def margins() -> list[Finding]:
    """Findings of theory about the recommended terms."""
    return [explosion(), reach(), audits(), longer(), reward(), bond()]


def explosion() -> Finding:
    """The stake for a fixed audit."""
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
    """How few honest verifiers the recommended terms stand, by K."""
    from sim.figures import Line, lines

    sizes = np.unique(np.geomspace(_SHORT, most_segments(), 25).astype(int))
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
    """What the audit costs, in budgets."""
    from sim.figures import Line, lines

    most = most_segments()
    sizes = np.unique(np.geomspace(_SHORT, most, 30).astype(int))
    costs = np.array([_fees(int(size)) for size in sizes])
    verb = "fall" if costs[-1] < costs[0] else "go"
    sentence = (
        f"At the same stake V q must grow with K; from K = {_SHORT} on audit fees {verb} from {costs[0]:.2f} to "
        f"{costs[-1]:.2f} budgets at K = {most}"
    )
    at = _REFERENCE
    terms = recommended_terms(at, CHAIN_TOKEN)
    rule = float(
        least_audits(
            segments=at,
            honest=float(RULES.honest_share),
            price=0.0,
            gain=float(RULES.gain),
            stake=float(RULES.stake),
        )
    )
    note = (
        f"Deterrence of one false segment, with nothing counted on but the stake, n = K G / (h (S - R)): {rule:.1f} "
        f"audits at K = {at}; the recommended V q is {terms.verifiers * terms.segments_per_verifier}."
    )
    return Finding(
        sentence,
        lines([Line("", sizes, costs)], x="K: segments of a task", y="audit fees, budgets", log_x=True),
        note,
    )


def longer() -> Finding:
    """Milestones: into how many tasks longer runs are split."""
    most = most_segments()
    by_rule = {size: -(-size // most) for size in _LONG}
    # A false segment anywhere makes the last result false: every part is to stand the whole gain.
    whole = {
        size: fewest_milestones(
            segments=size,
            segments_per_verifier=MAX_SEAT_SEGMENTS,
            verifiers=RULES.verifiers,
            honest=RULES.honest_share,
            price=_BUDGET,
            gain=_BUDGET,
            audit_fee=0,
            multiple=float(RULES.stake),
        )
        for size in _LONG
    }
    parts = ", ".join(f"{by_rule[size]} for {size:,} segments" for size in _LONG)
    same = ", ".join(
        f"{plan.tasks} of {plan.segments}" if (plan := whole[size]) is not None else "none" for size in _LONG
    )
    sentence = (
        f"Longer runs are split into tasks of at most {most} segments, each beginning with the result of the one "
        f"before: {parts}"
    )
    note = (
        f"Each part is posted with the stake of the whole run's budget, for one false segment anywhere spoils the last "
        f"result; with prices of parts alone counted as lost, theory splits these runs into {same}."
    )
    return Finding(sentence, None, note)


class Challenges(NamedTuple):
    """What proving a false result costs beside the reward cap, for the default budget."""

    costs: Mapping[int, float]
    """Tokens by K."""
    least: float
    """Least and most that the reward cap is, in costs of a challenge."""
    most: float


def challenges() -> Challenges:
    """For numbers of segments of one task."""
    cap = MarketParameters().reward_cap / TOKEN
    sizes = np.unique(np.geomspace(1, most_segments(), 40).astype(int))
    costs = {int(size): _challenge_cost(int(size)) for size in sizes}
    ratios = [cap / cost for cost in costs.values()]
    return Challenges(costs, min(ratios), max(ratios))


def reward() -> Finding:
    """The reward cap beside what a challenge costs."""
    from sim.figures import Line, lines

    found, cap = challenges(), MarketParameters().reward_cap / TOKEN
    sizes, costs = list(found.costs), np.array(list(found.costs.values()))
    sentence = (
        f"For a budget of {_BUDGET / TOKEN:g} a challenge costs {costs.min():.0f} to {costs.max():.0f} tokens (gas, "
        f"replays, the seat's fee), by the task's length; the reward cap of {cap:g} tokens is {found.least:.1f} to "
        f"{found.most:.1f} times that"
    )
    if found.least < 1:
        sentence += ", and where it is less than the cost, attesting blind pays more than convicting"
    series = [Line("cost of a challenge", sizes, costs), Line("reward cap", sizes, np.full(len(sizes), cap))]
    return Finding(sentence, lines(series, x="K: segments of a task", y="tokens", log_x=True, log_y=True))


def bond() -> Finding:
    """The challenger's bond beside what a false challenge costs others."""
    parameters = MarketParameters()
    # Most games are over within 30 days; 10 % a year on stake and price that wait.
    held = (parameters.stake + parameters.budget) / TOKEN
    delay = waiting_cost(amount=held, seconds=30 * 86_400, yearly_rate=0.1)
    defence = (
        parameters.gas_defence * parameters.gas_price
        + parameters.replay_cost * parameters.training_cost / TOKEN / most_segments()
    )
    whole = least_bond(defence=defence, delay=delay, factor=0)
    half = least_bond(defence=defence, delay=delay, factor=0.5)
    given = parameters.challenge_bond / TOKEN
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
    """Bisection: S_min falls as h grows. 1 where even that is too few. The price counts as nothing that is lost."""
    terms = recommended_terms(segments, CHAIN_TOKEN)

    def stands(honest: float) -> bool:
        needed = stake_multiple(
            segments=segments,
            segments_per_verifier=terms.segments_per_verifier,
            verifiers=terms.verifiers,
            honest=honest,
            gain_ratio=gain,
        )
        return needed + 1 <= float(RULES.stake)

    low, high = 0.0, 1.0
    if not stands(high):
        return float("nan")
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def _fees(segments: int) -> float:
    terms = recommended_terms(segments, CHAIN_TOKEN)
    return terms.verifiers * terms.forgone / CHAIN_TOKEN


def _challenge_cost(segments: int) -> float:
    """Tokens: the game's gas, the seat's replays, and the fees that a conviction does not pay."""
    parameters = MarketParameters()
    terms = recommended_terms(segments, _BUDGET * CHAIN_TOKEN // TOKEN)
    replays = (
        parameters.replay_cost * parameters.training_cost / TOKEN / segments * terms.segments_per_verifier
    )
    return parameters.gas_dispute * parameters.gas_price + replays + terms.forgone / CHAIN_TOKEN


def _words(share: float) -> str:
    return f"{share:.0%}" if share == share else "no share"
