"""Terms: every bound has its own error, and the time in a game follows dispute.md section 6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.chain.parameters import TOKEN
from protocol.tasks.task import TermsError, replay_allowance, replay_seconds
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
        ("clock", 0),
        ("clock", 1 << 32),
        ("replay_allowance", -1),
        ("replay_allowance", 1 << 32),
        ("verifiers", 33),
        ("thinning", 0),
        ("thinning", 3),
        ("thinning", 128),
        ("move_time", 0),
        ("move_time", 101),
        ("look_chance", -1),
        ("look_chance", 10_001),
        ("jurors", -1),
        ("jurors", 33),
        ("segments_per_verifier", 5),
        ("seat_lock", 4 * 10**18 - 1),
        ("seat_lock", 1 << 128),
        ("bundle", ""),
        ("bundle", "x" * 1_025),
    ],
)
def test_a_number_out_of_bounds_is_named(field: str, value: Any) -> None:
    with pytest.raises(TermsError, match=f"terms, {field}: expected"):
        terms(**{field: value})


def test_a_seat_has_at_most_64_segments_and_no_more_than_there_are() -> None:
    most = terms(segments=100, verifiers=32, segments_per_verifier=64, seat_lock=128 * 10**18, stake=10**22)
    assert most.seat_lock == most.seat_fee
    with pytest.raises(TermsError, match="segments_per_verifier: expected a whole number from 1 to 64"):
        terms(segments=100, segments_per_verifier=65)


def test_a_digest_leaves_out_at_most_63_of_64_chunks_and_looks_at_every_segment() -> None:
    assert terms(segment_steps=100, thinning=64).thinning == 64
    with pytest.raises(TermsError, match="thinning: expected a whole number from 1 to 2"):
        terms(segment_steps=2, thinning=4)
    with pytest.raises(TermsError, match="thinning: expected a power of two"):
        terms(segment_steps=100, thinning=12)


def test_the_escrow_holds_every_fee_that_may_fall_due() -> None:
    posted = terms(budget=1000, restitution=0, audit_fee=7, verifiers=3, segments_per_verifier=2)
    assert posted.escrow(draw_fee=11) == 1000 + 3 * 2 * 7 + 8 * 11
    looked_at = replace(posted, look_chance=1, seat_lock=12 * TOKEN)
    assert looked_at.escrow(draw_fee=11) == posted.escrow(draw_fee=11) + 3 * 2 * 7 + 4 * 11


def test_looks_need_a_lock_a_stake_and_at_most_32_segments_of_seats() -> None:
    with pytest.raises(TermsError, match="seat_lock: expected a whole number from 12 tokens to"):
        terms(look_chance=1_000)
    fit = terms(look_chance=10_000, verifiers=8, segments_per_verifier=4, seat_lock=12 * TOKEN)
    # For each look, a conviction may owe a game's cost and the fee.
    assert fit.owed - replace(fit, look_chance=0).owed == 32 * (3 + 2) * TOKEN
    with pytest.raises(TermsError, match="stake: expected"):
        replace(fit, stake=-(-4 * fit.owed // 3) - 1)
    with pytest.raises(TermsError, match="look_chance: expected a whole number from 0 to 0"):
        replace(fit, verifiers=9)
    assert replace(fit, look_chance=0, verifiers=9).look_chance == 0


def test_looks_pay_one_segment_and_bind_a_level_longer_each() -> None:
    """contracts/test/audit/Eligible.t.sol has the same numbers for TaskMarket.seatTermsOf."""
    plain = terms(
        segments_per_verifier=2, audit_fee=2 * TOKEN, attest_period=200, challenge_period=400, move_time=50
    )
    assert (plain.least_fee, plain.seat_period) == (4 * TOKEN, 400)
    looked = replace(plain, look_chance=1, seat_lock=max(plain.seat_lock, 4 * plain.game_cost))
    assert (looked.least_fee, looked.seat_period) == (2 * TOKEN, 1200)


def test_the_least_speed_is_of_all_segments_and_rounded_up() -> None:
    """All segments of a seat must be replayed within the attestation period. With looks, they must be
    replayed within a move time, because looks may accuse all of them.
    """
    plain = terms(
        segments_per_verifier=2,
        attest_period=200,
        challenge_period=400,
        move_time=50,
        segment_steps=10,
        step_operations=20,
    )
    assert (plain.seat_operations, plain.least_speed) == (400, 2)
    assert replace(plain, step_operations=21).least_speed == 3
    assert replace(plain, look_chance=1, seat_lock=4 * plain.game_cost).least_speed == 8


def test_each_side_of_a_game_has_clock_and_allowance() -> None:
    assert terms(clock=30, replay_allowance=12).game_time == 42


def test_the_allowance_is_three_times_the_replays_of_sixteen_games() -> None:
    # 4 steps of 5 * 10^8 operations take 2 s, and 5 states of 3 * 10^8 bytes take 5 s.
    assert replay_allowance(4, 500_000_000, 300_000_000) == 3 * 16 * (2 + 5)
    assert replay_allowance(1, 1, 1) == 1, "rounded up"


def test_a_replay_is_its_steps_and_the_hashing_of_its_states() -> None:
    task = terms(segment_steps=4, step_operations=500, state_bytes=300_000_000)
    assert replay_seconds(task, 1_000) == 2 + 5
