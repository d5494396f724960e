"""What claims cost a seat, and what the delay by claims costs the solver: the figures of docs/security.md."""

import pytest

from protocol.chain.parameters import RECOMMENDED, TOKEN
from protocol.chain.recommendation import RULES, move_time
from protocol.dispute.juries import most_claims
from protocol.tasks.amounts import YEAR, derive
from tests.unit.tasks.priced import DAY, on_l2

CLAIM = RECOMMENDED.draw_delay + 2 * DAY + 2 * move_time(RECOMMENDED, DAY)
"""Seconds by which a claim delays a task, if the seat makes it in the last second of its time to attest, and
this time is a day.

This is the time for the claim's draw, votes, objection and openings, and for attesting again.
"""


@pytest.mark.parametrize(
    ("segments", "each", "claims", "days", "tokens", "capital", "honest", "silence"),
    [
        (60, 1, 5, 15.2, 92.2, 139.1, 55.3, 18.4),
        (1_000, 14, 18, 54.8, 21.6, 575.8, 19.2, 15.5),
    ],
)
def test_what_claims_cost_a_seat_and_the_solver(
    segments: int,
    each: int,
    claims: int,
    days: float,
    tokens: float,
    capital: float,
    honest: float,
    silence: float,
) -> None:
    """A budget of 1,000 tokens, recommended parameters, and capital at 10 % a year.

    `honest` is the cost to an honest seat that claims every item.
    """
    amounts = derive(on_l2(segments), RULES)
    assert amounts.segments_per_verifier == each
    assert most_claims(each) == claims
    one = (amounts.audit_fee + RECOMMENDED.draw_fee) / TOKEN
    assert claims * CLAIM / DAY == pytest.approx(days, abs=0.05)
    assert claims * one == pytest.approx(tokens, abs=0.05)
    delay = amounts.stake * RULES.capital_rate * claims * CLAIM / YEAR / TOKEN
    assert float(delay) == pytest.approx(capital, abs=0.05)
    assert (each + 2) * one == pytest.approx(honest, abs=0.05)
    assert (amounts.seat_fee + RECOMMENDED.draw_fee) / TOKEN == pytest.approx(silence, abs=0.05)
