"""Closed forms behind the recommended terms: how far they reach, what they cost, and what longer tasks do instead.

Not a study: `sim.studies.recommended` shows these findings below what it has played. All sentences are computed from
protocol.tasks.economics, sim.theory and the recommended file; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES, Rules, most_segments, recommended_terms
from protocol.tasks.task import MAX_DRAWS
from sim.parameters import MarketParameters
from sim.studies.study import Finding
from sim.theory import (
    bonds_together,
    fewest_milestones,
    least_bond,
    stake_multiple,
    waiting_cost,
)
from sim.units import TOKEN

_BUDGET: Final = MarketParameters().budget
_REROLLS: Final = (0, 1, 2)
_SHORT: Final = 5
"""Segments of the shortest tasks that are looked at."""
_LONG: Final = (100, 500, 1000)
"""Segments of longer tasks."""
FORCED_MARGIN: Final = 1.25
"""Forced errors take so many times what the replays of a seat cost."""


def margins() -> list[Finding]:
    """Findings of theory about the recommended terms."""
    return [explosion(), reach(), audits(), longer(), reward(), bond()]


def forced_rate(parameters: MarketParameters) -> float:
    """e at which whoever attests without looking loses a slot often enough: FORCED_MARGIN times the replays it saves.

    A seat of n duties is flagged with chance 1 - (1 - e)^n and then loses one slot's stake, once.
    """
    duties, replays = _seat(parameters)
    needed = min(FORCED_MARGIN * replays / parameters.stake_unit, 1.0)
    return float(1 - (1 - needed) ** (1 / duties))


def forced_lock(parameters: MarketParameters, rate: float) -> float:
    """The slot's stake that does the same at a given e, in tokens."""
    duties, replays = _seat(parameters)
    return float(FORCED_MARGIN * replays / (1 - (1 - rate) ** duties) / TOKEN)


def _seat(parameters: MarketParameters) -> tuple[int, float]:
    """Duties of a seat, and the cost of their replays in token units."""
    duties = min(parameters.segments_per_verifier + 1, parameters.segments)
    return duties, parameters.replay_cost * parameters.training_cost / parameters.segments * duties


def explosion() -> Finding:
    """The stake for a fixed audit, for each k."""
    from sim.figures import Line, lines

    sizes = np.unique(np.geomspace(5, 1000, 40).astype(int))
    series, at = [], {}
    for k in _REROLLS:
        stakes = np.array([_multiple(int(size), 4, k) for size in sizes])
        series.append(Line(f"{2**k} tries at a seed", sizes, stakes))
        at[k] = (_multiple(100, 4, k), _multiple(1000, 4, k))
    ratio = at[2][1] / at[2][0]
    sentence = (
        f"With {RULES.verifiers} verifiers of 4 segments each the least stake explodes with the task's length: "
        f"{at[2][0]:,.0f} prices at K = 100 and {ratio:,.0f} times that at K = 1000 for a solver with 4 tries, "
        f"{at[0][0]:,.0f} and {at[0][1]:,.0f} prices for one with a single draw"
    )
    return Finding(
        sentence, lines(series, x="K: segments of a task", y="least stake, prices", log_x=True, log_y=True)
    )


def reach() -> Finding:
    """How few honest verifiers the recommended terms stand, by K and k."""
    from sim.figures import Line, lines

    sizes = list(range(5, most_segments() + 1, 5))
    series, worst = [], {}
    for k in _REROLLS:
        for gain in (1, 2):
            shares = np.array([_least_honest(size, k, gain) for size in sizes])
            series.append(Line(f"{2**k} tries, gain {gain} budgets", sizes, shares))
            worst[k, gain] = float(shares.max())
    sentence = (
        f"The recommended terms stand an honest share down to {worst[0, 1]:.0%} against one draw "
        f"({worst[0, 2]:.0%} when a false result is worth 2 budgets), and to {worst[2, 1]:.0%} "
        f"against a solver that keeps everybody from drawing twice ({_words(worst[2, 2])} at 2 budgets)"
    )
    return Finding(sentence, lines(series, x="K: segments of a task", y="least honest share", level=0.5))


def audits() -> Finding:
    """What the audit costs, in budgets."""
    from sim.figures import Line, lines

    series, said, falls = [], [], True
    for k in _REROLLS:
        rules = replace(RULES, rerolls=k)
        most = most_segments(rules)
        sizes = np.unique(np.geomspace(_SHORT, most, 30).astype(int))
        costs = np.array([_fees(int(size), rules) for size in sizes])
        series.append(Line(f"{2**k} tries at a seed", sizes, costs))
        said.append(
            f"from {costs[0]:.2f} to {costs[-1]:.2f} budgets at K = {most} for {2**k} {'tries' if k else 'try'}"
        )
        falls &= bool(costs[-1] < costs[0])
    sentence = (
        f"At the same stake V q must grow with K; from K = {_SHORT} on audit fees {'fall' if falls else 'go'} "
        f"{', '.join(said)}"
    )
    note = (
        "Tries at a seed are what makes audits dear: a solver has more than one only while it keeps everybody else "
        "from proving a draw. With a source of randomness that cannot be waited out, set rerolls to 0."
    )
    return Finding(
        sentence, lines(series, x="K: segments of a task", y="audit fees, budgets", log_x=True), note
    )


def longer() -> Finding:
    """Milestones: into how many tasks longer runs are split."""
    most, draws = most_segments(), MAX_DRAWS // RULES.verifiers
    by_rule = {size: -(-size // most) for size in _LONG}
    # A false segment anywhere makes the last result false: every part is to stand the whole gain.
    whole = {
        size: fewest_milestones(
            segments=size,
            segments_per_verifier=draws,
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
    fitting: Sequence[int]
    """K at which the cap is once to twice the cost."""
    dearer: Sequence[int]
    """K at which the cost is above the cap: whoever attests without a look earns more than who convicts."""


def challenges() -> Challenges:
    """For each number of segments of one task."""
    cap = MarketParameters().reward_cap / TOKEN
    costs = {size: _challenge_cost(size) for size in range(1, most_segments() + 1)}
    return Challenges(
        costs,
        [size for size, cost in costs.items() if cost <= cap <= 2 * cost],
        [size for size, cost in costs.items() if cost > cap],
    )


def spans(numbers: Sequence[int]) -> str:
    """Ascending whole numbers in words: "1 to 4, 7"."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    words = [f"{low} to {high}" if low < high else f"{low}" for low, high in zip(firsts, lasts)]
    return ", ".join(words) or "none"


def reward() -> Finding:
    """The reward cap beside what a challenge costs."""
    from sim.figures import Line, lines

    found, cap = challenges(), MarketParameters().reward_cap / TOKEN
    sizes, costs = list(found.costs), np.array(list(found.costs.values()))
    sentence = (
        f"A reward cap of {cap:g} tokens is once to twice the cost of a challenge (gas, replays, fees forgone) at "
        f"K = {spans(found.fitting)} for a budget of {_BUDGET / TOKEN:g}: larger budgets need a larger cap, or parts"
    )
    if found.dearer:
        most = max(found.costs[size] for size in found.dearer)
        sentence += (
            f"; at K = {spans(found.dearer)} a challenge costs more, up to {most:.0f} tokens, and attesting blind pays "
            f"more than convicting"
        )
    series = [
        Line("cost of a challenge", sizes, costs),
        Line("twice that", sizes, 2 * costs),
        Line("reward cap", sizes, np.full(len(sizes), cap)),
    ]
    return Finding(sentence, lines(series, x="K: segments of a task", y="tokens", log_y=True))


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
    schedule = [bonds_together(bond=parameters.challenge_bond, challenges=n) / TOKEN for n in (4, 6, 8)]
    sentence = (
        f"A bond of {given:g} tokens is between the {half:.1f} with which a false challenge harms others by half of "
        f"what it costs, and the {whole:.1f} that would make a solver whole after a game of 30 days"
        if half <= given <= whole
        else f"A bond of {given:g} tokens lies outside of {half:.1f} to {whole:.1f}, the bonds for factors of 0.5 and 0"
    )
    note = (
        f"Doubled beyond four open challenges (dispute.md section 6, not in the contracts), 4, 6 and 8 together cost "
        f"{schedule[0]:,.0f}, {schedule[1]:,.0f} and {schedule[2]:,.0f} tokens."
    )
    return Finding(sentence, None, note)


def _multiple(segments: int, draws: int, rerolls: int) -> float:
    return stake_multiple(
        segments=segments,
        segments_per_verifier=draws,
        verifiers=RULES.verifiers,
        honest=float(RULES.honest_share),
        gain_ratio=float(RULES.gain),
        rerolls=rerolls,
    )


def _least_honest(segments: int, rerolls: int, gain: float) -> float:
    """Bisection: S_min falls as h grows. 1 where even that is too few. The price counts as nothing that is lost."""
    terms = recommended_terms(segments, CHAIN_TOKEN)

    def stands(honest: float) -> bool:
        needed = stake_multiple(
            segments=segments,
            segments_per_verifier=terms.segments_per_verifier,
            verifiers=terms.verifiers,
            honest=honest,
            gain_ratio=gain,
            rerolls=rerolls,
        )
        return needed + 1 <= float(RULES.stake)

    low, high = 0.0, 1.0
    if not stands(high):
        return float("nan")
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def _fees(segments: int, rules: Rules) -> float:
    terms = recommended_terms(segments, CHAIN_TOKEN, rules=rules)
    return terms.verifiers * terms.forgone(segments) / CHAIN_TOKEN


def _challenge_cost(segments: int) -> float:
    """Tokens: the game's gas, the seat's replays, and the fees that a conviction does not pay."""
    parameters = MarketParameters()
    terms = recommended_terms(segments, _BUDGET * CHAIN_TOKEN // TOKEN)
    duties = min(terms.segments_per_verifier + 1, segments)
    replays = parameters.replay_cost * parameters.training_cost / TOKEN / segments * duties
    return parameters.gas_dispute * parameters.gas_price + replays + terms.forgone(segments) / CHAIN_TOKEN


def _words(share: float) -> str:
    return f"{share:.0%}" if share == share else "no share"
