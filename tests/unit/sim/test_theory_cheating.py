"""The profit of cheating is compared with a sum over all outcomes, and the stake with the integer stake of
protocol.tasks.economics. Frontiers of audits are tested too.
"""

from fractions import Fraction
from math import ceil, comb
from typing import Any

import numpy as np
import pytest

from protocol.tasks import economics
from protocol.tasks.economics import ONE, Audit, StakeError
from sim.theory import (
    TheoryError,
    advantage_at,
    audits_per_segment,
    break_even_false,
    caught_probability,
    cheating_advantage,
    cheating_profit,
    fewest_milestones,
    frontier,
    largest_segments,
    least_audits,
    least_segments_per_verifier,
    milestones,
    minimum_stake,
    stake_at,
    stake_multiple,
    stake_multiple_sparse,
    worst_false,
    zero_profit_stake,
)

Case = dict[str, Any]


def expected(
    segments: int,
    false: int,
    q: int,
    verifiers: int,
    honest: Fraction,
    kept: Fraction,
    money: tuple[int, ...],
) -> Fraction:
    """The mean wealth of a cheater, computed as a sum over all possible numbers of honest seats and of finders."""
    price, gain, stake, cost = money
    hit = 1 - Fraction(comb(segments - false, q), comb(segments, q))
    total = Fraction(0)
    for seats in range(verifiers + 1):
        seated = comb(verifiers, seats) * honest**seats * (1 - honest) ** (verifiers - seats)
        for finders in range(seats + 1):
            chance = seated * comb(seats, finders) * hit**finders * (1 - hit) ** (seats - finders)
            has = price + gain if finders == 0 else kept * gain - stake
            total += chance * (has - (1 - Fraction(false, segments)) * cost)
    return total


@pytest.mark.parametrize("kept", [Fraction(0), Fraction(1, 4), Fraction(1)])
@pytest.mark.parametrize("false", [1, 3, 8])
def test_profit_sums_over_all_outcomes(false: int, kept: Fraction) -> None:
    money = (100, 40, 300, 70)
    arguments: Case = {
        "segments": 8,
        "false": false,
        "segments_per_verifier": 2,
        "verifiers": 3,
        "honest": 0.75,
    }
    amounts: Case = dict(zip(("price", "gain", "stake", "cost"), money))
    exact = expected(8, false, 2, 3, Fraction(3, 4), kept, money)
    got = cheating_profit(**arguments, **amounts, kept=float(kept))
    assert float(got) == pytest.approx(float(exact), rel=1e-12)
    over_honest = cheating_advantage(**arguments, **amounts, kept=float(kept))
    assert float(over_honest) == pytest.approx(float(exact) - 30, rel=1e-12)


def test_no_false_segment_is_honest_work() -> None:
    audit: Case = {"segments": 8, "segments_per_verifier": 2, "verifiers": 3, "honest": 0.75}
    assert float(cheating_profit(**audit, false=0, price=100, gain=40, stake=300, cost=70)) == 30


@pytest.mark.parametrize(
    ("segments", "q", "verifiers", "honest"),
    [(5, 2, 3, 0.75), (24, 9, 4, 0.5), (30, 30, 2, 0.75), (1, 1, 1, 1)],
)
def test_worst_stake_is_the_integer_one(segments: int, q: int, verifiers: int, honest: float) -> None:
    price, gain = 7 * 10**20, 10**20
    audit: Case = {"segments": segments, "segments_per_verifier": q, "verifiers": verifiers, "honest": honest}
    whole = economics.minimum_stake(Audit(segments, q, verifiers, int(honest * ONE)), price, gain)
    m, stake = worst_false(**audit, price=price, gain=gain)
    assert max(0.0, stake) == pytest.approx(whole, rel=1e-9, abs=1e9)
    assert minimum_stake(**audit, price=price, gain=gain) == whole
    kept = minimum_stake(**audit, price=price, gain=gain, reward=5, restitution=7, margin=11)
    assert kept == whole + 23
    # At that stake, the worst m earns as much as honest work, and no other m earns more.
    advantage = cheating_advantage(
        **audit,
        false=np.arange(1, segments + 1),
        price=price,
        gain=gain,
        stake=max(0.0, stake),
        cost=price,
    )
    assert float(advantage.max()) <= price * 1e-12
    if stake > 0:
        assert float(advantage[m - 1]) == pytest.approx(0, abs=price * 1e-12)


def test_zero_profit_stake_zeroes_the_profit() -> None:
    case: Case = {
        "segments": 20,
        "false": np.arange(1, 21),
        "segments_per_verifier": 3,
        "verifiers": 3,
        "honest": 0.5,
        "price": 10.0,
        "gain": 4.0,
        "cost": 6.0,
        "kept": 0.25,
    }
    stakes = zero_profit_stake(**case)
    assert np.allclose(cheating_advantage(**case, stake=np.maximum(stakes, 0))[stakes >= 0], 0, atol=1e-9)
    never = zero_profit_stake(**{**case, "honest": 0.0})
    assert np.all(np.isinf(never))
    assert float(zero_profit_stake(**{**case, "honest": 0.0, "gain": 0.0, "cost": 0.0})[0]) == -10


def test_break_even_ranges_are_where_the_sign_changes() -> None:
    audit: Case = {"segments": 50, "segments_per_verifier": 4, "verifiers": 3, "honest": 0.7}
    amounts: Case = {"price": 1.0, "gain": 0.05, "stake": 0.0, "cost": 3.0}
    # The second case has two ranges: rarely drawn, or the whole cost saved.
    for money, ranges in ((amounts, 1), ({**amounts, "stake": 1.0, "cost": 1.999, "gain": 0.4}, 2)):
        advantage = cheating_advantage(**audit, **money, false=np.arange(1, 51))
        found = break_even_false(**audit, **money)
        assert len(found) == ranges
        pays = [m for first, last in found for m in range(first, last + 1)]
        assert pays == [m for m in range(1, 51) if advantage[m - 1] > 0]
    assert break_even_false(**audit, price=1.0, gain=0.0, stake=10**9, cost=1.0) == ()


def test_design_example() -> None:
    """The formula of audit.md section 9 gives a stake of 118 p at K = 1000, q = 4, V = 3, h = 0.7 and G = p."""
    case: Case = {
        "segments": 1000,
        "segments_per_verifier": 4,
        "verifiers": 3,
        "honest": 0.7,
        "gain_ratio": 1.0,
    }
    assert int(stake_multiple(**case)) == 118
    assert float(stake_multiple_sparse(**case)) == pytest.approx(118, rel=0.005)


def test_sparse_limit_is_reached() -> None:
    ratios = []
    for segments in (10**3, 10**4, 10**5):
        case: Case = {
            "segments": segments,
            "segments_per_verifier": 2,
            "verifiers": 3,
            "honest": 0.5,
            "gain_ratio": 2.0,
        }
        ratios.append(stake_multiple(**case) / float(stake_multiple_sparse(**case)))
    assert abs(ratios[2] - 1) < abs(ratios[1] - 1) / 5 < abs(ratios[0] - 1) / 25
    assert ratios[2] == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize("verifiers", [1, 3, 6])
def test_least_q_is_least_and_grows_with_the_segments(verifiers: int) -> None:
    terms: Case = {"verifiers": verifiers, "honest": 0.75, "gain_ratio": 1.0, "multiple": 9.0}
    at = {k: least_segments_per_verifier(segments=k, **terms) for k in (20, 200, 4000)}
    for segments, q in at.items():
        assert q is not None
        audit: Case = {"segments": segments, "verifiers": verifiers, "honest": 0.75, "gain_ratio": 1.0}
        assert stake_multiple(**audit, segments_per_verifier=q) <= 9
        assert q == 1 or stake_multiple(**audit, segments_per_verifier=q - 1) > 9
    slope = audits_per_segment(honest=0.75, gain_ratio=1.0, multiple=9.0, verifiers=verifiers)
    assert at[4000] is not None
    assert verifiers * at[4000] / 4000 == pytest.approx(slope, rel=0.02)


def test_frontier_lists_only_what_reaches_the_multiple() -> None:
    points = frontier(segments=30, honest=0.5, gain_ratio=1.0, multiple=2.0, most_verifiers=8)
    # A single seat is too rarely honest: 2 / 0.5 - 1 > 2.
    assert [point.verifiers for point in points] == list(range(2, 9))
    assert all(point.multiple <= 2 and point.audits == point.verifiers * point[1] for point in points)


@pytest.mark.parametrize(("q", "verifiers"), [(16, 4), (4, 3), (1, 1)])
def test_largest_k_is_where_the_stake_passes_the_multiple(q: int, verifiers: int) -> None:
    audit: Case = {"segments_per_verifier": q, "verifiers": verifiers, "honest": 0.7, "gain_ratio": 1.0}
    most = largest_segments(**audit, multiple=10.0)
    reached = [stake_multiple(segments=k, **audit) for k in range(1, most + 30)]
    assert [value <= 10 for value in reached] == [k <= most for k in range(1, most + 30)]


def test_milestones_bring_the_stake_down() -> None:
    task: Case = {
        "segments": 200,
        "segments_per_verifier": 16,
        "verifiers": 4,
        "honest": 0.7,
        "price": 10**18,
        "gain": 10**18,
    }
    whole = milestones(**task, tasks=1, audit_fee=10)
    assert whole.stake == minimum_stake(**task)
    assert whole.fees == 10 * 4 * 16
    split = milestones(**task, tasks=7, audit_fee=10)
    assert (split.segments, split.fees) == (29, 7 * 10 * 4 * 16)
    assert split.stake == minimum_stake(
        segments=29, segments_per_verifier=16, verifiers=4, honest=0.7, price=-(-(10**18) // 7), gain=10**18
    )
    fewest = fewest_milestones(**task, audit_fee=10, multiple=2.0)
    assert fewest is not None
    assert fewest.stake <= 2 * 10**18 < milestones(**task, tasks=fewest.tasks - 1, audit_fee=10).stake
    assert fewest_milestones(**task, audit_fee=10, multiple=0.1) is None


def test_impossible_terms_are_refused() -> None:
    with pytest.raises(TheoryError, match="raise the multiple"):
        audits_per_segment(honest=0.7, gain_ratio=12.0, multiple=10.0)
    with pytest.raises(TheoryError, match="raise the multiple or V"):
        audits_per_segment(honest=0.1, gain_ratio=1.0, multiple=3.0, verifiers=2)
    with pytest.raises(TheoryError, match="tasks must be from 1 to 5"):
        milestones(
            segments=5,
            tasks=6,
            segments_per_verifier=1,
            verifiers=1,
            honest=1.0,
            price=1,
            gain=1,
            audit_fee=1,
        )
    with pytest.raises(StakeError):
        minimum_stake(segments=5, segments_per_verifier=1, verifiers=1, honest=0.0, price=1, gain=1)
    with pytest.raises(TheoryError, match="false must be at least 1"):
        zero_profit_stake(
            segments=5,
            false=0,
            segments_per_verifier=1,
            verifiers=1,
            honest=1,
            price=1,
            gain=1,
            cost=1,
        )


def test_the_stake_of_a_share_is_what_that_share_loses() -> None:
    """With one segment and only honest seats, conviction is certain. The stake S then follows from S + p = f
    c + G, with the price p, the false share f, the cost c and the gain G.
    """
    assert float(caught_probability(1, 1, 1, 1, 1.0)) == 1
    assert stake_multiple(segments=1, segments_per_verifier=1, verifiers=1, honest=1.0, gain_ratio=1.0) == 1


def test_stake_at_a_chance_zeroes_the_advantage() -> None:
    false = np.arange(1, 41)
    caught = caught_probability(40, false, 4, 4, 0.75, accounts=8)
    money: Case = {"price": 10.0, "gain": 8.0, "cost": 10.0}
    stakes = stake_at(caught, share=false / 40, **money)
    zero = advantage_at(caught, share=false / 40, stake=np.maximum(stakes, 0), **money)
    assert np.allclose(zero[stakes >= 0], 0, atol=1e-9)
    audit: Case = {"segments": 40, "segments_per_verifier": 4, "verifiers": 4, "honest": 0.75}
    few = zero_profit_stake(**audit, **money, false=false, accounts=8)
    assert np.allclose(few, stakes)
    assert np.all(few <= zero_profit_stake(**audit, **money, false=false) + 1e-9)
    with pytest.raises(TheoryError, match="share must be above 0"):
        stake_at(0.5, share=0.0, **money)
    with pytest.raises(TheoryError, match="caught must be from 0 to 1"):
        advantage_at(1.5, share=0.5, stake=1, **money)


@pytest.mark.parametrize("segments", [300, 1200])
def test_audits_that_deter_one_false_segment_deter_any_number(segments: int) -> None:
    """The rule gives slightly too few audits, because it uses the mean number of hits, which exceeds the
    chance of a hit. With 5 % more audits than the rule gives, no number of false segments pays.
    """
    money: Case = {"price": 1.0, "gain": 1.0, "stake": 28.05}
    n = float(least_audits(segments=segments, honest=0.7, **money))
    assert n == pytest.approx(segments * (1 + 1 / segments) / (0.7 * 29.05))
    assert float(least_audits(segments=segments, honest=0.7, **{**money, "stake": 30.05}, reward=2.0)) == n
    case: Case = {"segments": segments, "verifiers": 3, "honest": 0.7, **money, "cost": 1.0}
    every = np.arange(1, segments + 1)
    enough = cheating_advantage(**case, false=every, segments_per_verifier=ceil(1.05 * n / 3))
    assert float(enough.max()) <= 0
    short = cheating_advantage(**case, false=every, segments_per_verifier=ceil(n / 3) - 1)
    assert float(short[0]) > 0
    with pytest.raises(TheoryError, match="stake less reward"):
        least_audits(segments=9, honest=0.7, price=1, gain=1, stake=1, reward=2)
