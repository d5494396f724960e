"""Terms: every bound has an error of its own; clocks are dispute.md section 6's formula."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.tasks.task import Speed, TermsError, challenger_clock, clock, solver_clock
from tests.chain.trees import terms


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("program_id", bytes(32)),
        ("program_id", b"short"),
        ("initial_state", "00" * 32),
        ("segments", 0),
        ("segments", (1 << 20) + 1),
        ("segment_steps", (1 << 16) + 1),
        ("state_tensors", 65_536),
        ("constants", 0),
        ("step_operations", 0),
        ("state_bytes", 1 << 64),
        ("budget", 0),
        ("budget", 1 << 128),
        ("budget", True),
        ("budget", 1.5),
        ("stake", -1),
        ("restitution", 100 * 10**18 + 1),
        ("delay_penalty", 1000 * 10**18 + 1),
        ("challenge_period", 101),
        ("solver_clock", 1 << 32),
        ("verifiers", 65),
        ("segments_per_verifier", 65),
        ("matches", 2),
        ("bundle", ""),
        ("bundle", "x" * 1_025),
    ],
)
def test_a_number_out_of_bounds_is_named(field: str, value: Any) -> None:
    with pytest.raises(TermsError, match=f"terms, {field}: expected"):
        terms(**{field: value})


def test_draws_of_all_verifiers_together_are_bounded() -> None:
    assert terms(verifiers=8, segments_per_verifier=8).verifiers == 8
    with pytest.raises(TermsError, match="segments_per_verifier"):
        terms(verifiers=8, segments_per_verifier=9)


def test_the_escrow_holds_every_fee_that_may_fall_due() -> None:
    posted = terms(budget=1000, restitution=0, audit_fee=7, verifiers=3, segments_per_verifier=2)
    assert posted.escrow(draw_fee=11) == 1000 + 3 * (2 + 1) * 7 + 11


def test_a_clock_is_the_fixed_part_and_three_times_the_work() -> None:
    speed = Speed(throughput=1_000, bandwidth=10, hash_rate=100)
    # 4 steps of 500 operations take 2 s, 300 bytes hashed 3 s, 50 bytes fetched 5 s.
    assert clock(7, speed, segment_steps=4, step_operations=500, hashed=300, fetched=50) == 7 + 3 * 10
    assert clock(7, speed, segment_steps=1, step_operations=1, hashed=0, fetched=0) == 8, "rounded up"
    work = {"segment_steps": 4, "step_operations": 500, "state_bytes": 60}
    assert solver_clock(7, speed, **work) == 7 + 3 * (2 + 3)
    assert challenger_clock(7, speed, **work) == 7 + 3 * (2 + 3 + 6)
