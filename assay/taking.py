"""Checks, before a task is posted, whether a solver with default settings would take it. The rule is the
one that solvers use to decide on bids.
"""

from __future__ import annotations

from math import ceil

from assay.errors import NobodyTakes
from protocol.tasks.offers import Figures, Refusal, Rule, decide
from protocol.tasks.task import TOKEN, Terms


def require_taken(terms: Terms, figures: Figures) -> None:
    """Raise NobodyTakes if a solver with these figures would not bid. The error says why the task is
    refused, and what to change.
    """
    decision = decide(terms, figures)
    if isinstance(decision, Refusal):
        raise NobodyTakes(
            "these terms",
            expected="that a solver with default settings bids on them",
            got=f"a refusal: {decision.reason}",
            remedy=f"{remedy_of(decision, terms)}. With --anyway it is posted all the same",
        )


def remedy_of(refusal: Refusal, terms: Terms) -> str:
    """The advice to the submitter on what to change."""
    least = refusal.least
    if refusal.rule is Rule.TRAINING:
        return f"give a training_period of at least {least} s, or leave it out"
    if refusal.rule is Rule.GAMES:
        clock = max(1, least - terms.replay_allowance)
        return f"give a clock of at least {clock} s, or leave it out; smaller segments need less"
    if refusal.rule is Rule.UPLINK:
        return (
            f"give an attest_period of at least {least} s, or leave it out; fewer verifiers, segments_per_verifier or "
            "jurors fetch fewer states at once"
        )
    if refusal.rule is Rule.STAKE:
        needed = ceil(terms.stake / TOKEN)
        return (
            f"a solver that takes it has to be started with `solver run --stake {needed}` at least. A lower budget, or "
            "more verifiers or segments_per_verifier, ask for less stake"
        )
    if refusal.rule is Rule.BOND:
        return f"give a bond of at least {_tokens(2 * least)}, or a game_cost of {_tokens(least)}"
    if refusal.rule is Rule.PRICE:
        return f"give a budget of at least {_tokens(least)}, or leave it out"
    return "change the task"


def _tokens(units: int) -> str:
    """An amount in tokens with at most four significant digits. It is rounded up, so that a submitter who
    gives this amount gives enough.
    """
    unit: int = 10 ** max(0, len(str(units)) - 4)
    return f"{-(-units // unit) * unit / TOKEN:.10g}"
