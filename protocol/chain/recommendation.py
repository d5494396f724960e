"""Recommended terms of a task: what a submitter that says nothing asks for. Pure; docs/economics.md says why.

The rules stand in `presets/recommended.toml` beside the deployment's parameters; `assay submit` and `sim` read the same
ones. Nothing here knows what a result is worth to a cheater or how many verifiers are honest: both are assumed there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final

from protocol.chain.parameters import PRESETS, RECOMMENDED, TOKEN, ParametersError
from protocol.errors import AssayError
from protocol.tasks.economics import ONE, Audit, StakeError, minimum_stake
from protocol.tasks.task import MAX_SEAT_SEGMENTS


class NoRecommendation(AssayError):
    """A task that no recommended terms fit; the message says into how many parts it must be split."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is assumed, and what is wanted. Shares and multiples are exact; a multiple is of the budget."""

    honest_share: Fraction
    """h: honest share of the verifiers' stake."""
    gain: Fraction
    """G: worth of a false result to its maker, a multiple."""
    verifiers: int
    """V."""
    stake: Fraction
    """What a conviction must cost beside what a cheater can get back, a multiple."""
    restitution: Fraction
    """A multiple."""
    delay_penalty: Fraction
    """A multiple."""
    audit_fee: Fraction
    """A multiple of budget / K: what training one segment may cost at most."""


@dataclass(frozen=True, slots=True)
class Recommended:
    """Terms by their names in `protocol.tasks.task.Terms`, amounts in token units."""

    stake: int
    restitution: int
    audit_fee: int
    delay_penalty: int
    verifiers: int
    segments_per_verifier: int
    seat_lock: int

    @property
    def forgone(self) -> int:
        """Fee that a seat gives up by convicting: a reward below it makes it look away."""
        return self.audit_fee * self.segments_per_verifier


def _rules() -> Rules:
    table: Mapping[str, Any] = tomllib.loads((PRESETS / "recommended.toml").read_text())["rules"]
    wanted = {known.name for known in fields(Rules)}
    if table.keys() != wanted:
        raise ParametersError(
            "rules of recommended",
            expected=", ".join(sorted(wanted)),
            got=", ".join(sorted(table)),
            remedy="correct the table [rules]",
        )
    values: dict[str, Any] = {name: Fraction(value) for name, value in table.items()}
    return Rules(**{**values, "verifiers": table["verifiers"]})


RULES: Final = _rules()


def recommended_terms(
    segments: int,
    budget: int,
    *,
    reward_cap: int = 0,
    draw_fee: int = RECOMMENDED.draw_fee,
    draws: int | None = None,
    audit_fee: int | None = None,
    rules: Rules = RULES,
) -> Recommended:
    """Terms for K = `segments` and a budget in token units; `draws` is q, and `audit_fee` the fee of a segment, where
    the submitter has chosen its own.

    The stake is `rules.stake` budgets, and on top the reward and the restitution, which a cheater that is its own
    challenger and submitter gets back. q is the least with which no number of false segments pays at that stake,
    for every price up to the budget. A seat locks what its silence costs, and nothing else is taken from it: its fee,
    and that of the next draw. Raises NoRecommendation where even q = 64 is too little.
    """
    restitution = int(rules.restitution * budget)
    q = _least_draws(segments, budget, rules) if draws is None else draws
    if q is None:
        most = most_segments(rules)
        whole = int(rules.stake * budget) + restitution + reward_cap
        raise NoRecommendation(
            f"{segments} segments: expected at most {most} in one task, for a verifier may draw {MAX_SEAT_SEGMENTS} "
            f"of them and cheating would pay; submit {-(-segments // most)} tasks, each of which "
            f"begins with the result of the one before, each with the whole stake of {whole / TOKEN:,g} tokens, "
            f"verifiers {rules.verifiers} and segments_per_verifier {MAX_SEAT_SEGMENTS}"
        )
    fee = -(-int(rules.audit_fee * budget) // segments) if audit_fee is None else audit_fee
    return Recommended(
        stake=int(rules.stake * budget) + restitution + reward_cap,
        restitution=restitution,
        audit_fee=fee,
        delay_penalty=int(rules.delay_penalty * budget),
        verifiers=rules.verifiers,
        segments_per_verifier=q,
        seat_lock=fee * q + draw_fee,
    )


def most_segments(rules: Rules = RULES) -> int:
    """K_max: the most segments of a task at q = 64. The stake needed grows with K, so bisection finds it."""
    low, high = 0, 1
    while _deters(high, MAX_SEAT_SEGMENTS, TOKEN, rules):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = _deters(middle, MAX_SEAT_SEGMENTS, TOKEN, rules)
        low, high = (middle, high) if fits else (low, middle)
    return low


def _least_draws(segments: int, budget: int, rules: Rules) -> int | None:
    """q: the stake needed falls as q grows, so bisection finds it. None when even the most draws are too few."""
    low, high = 0, min(segments, MAX_SEAT_SEGMENTS)
    if not _deters(segments, high, budget, rules):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _deters(segments, middle, budget, rules) else (middle, high)
    return high


def _deters(segments: int, draws: int, budget: int, rules: Rules) -> bool:
    """Tell whether the rules' stake is enough, with nothing counted on but the stake: `margin` gives the price back."""
    audit = Audit(segments, min(draws, segments), rules.verifiers, int(rules.honest_share * ONE))
    try:
        needed = minimum_stake(audit, budget, int(rules.gain * budget), margin=budget)
    except StakeError:
        return False
    return needed <= rules.stake * budget
