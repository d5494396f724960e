"""Colluders, Sybils and self-challenges: against chances, enumerated draws and the integer split of a slash."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from protocol.tasks.economics import slash_split
from sim.theory import (
    TheoryError,
    cheating_advantage,
    colluding_seats,
    collusion_threshold,
    concession_pays,
    expected_duties,
    least_effective_stake,
    least_honest_share,
    self_challenge,
    split_advantage,
)

AUDIT: dict[str, Any] = {"segments": 20, "segments_per_verifier": 4, "verifiers": 4}
MONEY: dict[str, Any] = {"price": 10.0, "gain": 10.0, "stake": 300.0, "cost": 8.0}


@pytest.mark.parametrize("rerolls", [0, 2])
def test_threshold_is_where_cheating_starts_to_pay(rerolls: int) -> None:
    share = collusion_threshold(**AUDIT, **MONEY, rerolls=rerolls)
    assert 0 < share < 1
    for colluding, pays in ((share - 1e-9, False), (share + 1e-9, True)):
        advantage = cheating_advantage(
            **AUDIT, **MONEY, false=np.arange(1, 21), honest=1 - colluding, rerolls=rerolls
        )
        assert bool(np.any(advantage > 0)) == pays


def test_honest_share_needed_at_its_limits() -> None:
    case = {**AUDIT, **MONEY, "false": 20, "rerolls": 0}
    # All false, one seat: h = D.
    assert float(least_honest_share(**{**case, "verifiers": 1})) == pytest.approx(18 / 310)
    assert float(least_honest_share(**{**case, "gain": 0.0, "cost": 0.0})) == 0
    assert float(least_honest_share(**{**case, "gain": 10**6})) == np.inf
    assert collusion_threshold(**AUDIT, **{**MONEY, "gain": 10.0**6}) == 0
    # Nobody is needed where nothing is won.
    assert collusion_threshold(**AUDIT, **{**MONEY, "gain": 0.0, "cost": 0.0}) == 1


def enumerate_owner(accounts: tuple[int, ...], slots: int, verifiers: int) -> np.ndarray[Any, Any]:
    """Count seats of an owner of the first slots, cut into accounts, over all equally likely draws."""
    owner = np.repeat(np.arange(len(accounts)), accounts)
    seats = np.zeros(verifiers + 1)
    for draw in product(range(slots), repeat=verifiers):
        seats[sum(slot < len(owner) and owner[slot] >= 0 for slot in draw)] += 1
    return np.asarray(seats / slots**verifiers)


@pytest.mark.parametrize("accounts", [(4,), (2, 2), (1, 1, 1, 1), (3, 1)])
def test_splitting_a_stake_leaves_the_law_of_its_seats(accounts: tuple[int, ...]) -> None:
    enumerated = enumerate_owner(accounts, 6, 3)
    assert np.allclose(colluding_seats(verifiers=3, share=4 / 6), enumerated, atol=1e-15)


def test_seats_are_a_law_for_every_share() -> None:
    law = colluding_seats(verifiers=5, share=np.array([0.0, 0.3, 1.0]))
    assert law.shape == (3, 6)
    assert np.allclose(law.sum(axis=1), 1)
    assert law[0, 0] == law[2, 5] == 1
    assert law[1] @ np.arange(6) == pytest.approx(1.5)


@pytest.mark.parametrize("accounts", [1, 2, 4])
def test_duties_count_once_for_each_account(accounts: int) -> None:
    """Monte Carlo of the board's draw: 4 of 8 slots in equal accounts, three draws, two of five segments and
    segment 5."""
    rng = np.random.default_rng(7)
    runs, verifiers, segments, q = 40_000, 3, 5, 2
    slots = rng.integers(0, 8, (runs, verifiers))
    account = np.where(slots < 4, slots * accounts // 4, -1)
    drawn = rng.permuted(np.tile(np.arange(segments), (runs, verifiers, 1)), axis=2)[:, :, :q]
    holds = np.zeros((runs, accounts, segments), dtype=bool)
    run = np.arange(runs)
    for seat in range(verifiers):
        own = account[:, seat] >= 0
        holds[run[own], account[own, seat], segments - 1] = True
        for i in range(q):
            holds[run[own], account[own, seat], drawn[own, seat, i]] = True
    totals = holds.sum(axis=(1, 2))
    error = totals.std() / np.sqrt(runs)
    exact = expected_duties(
        segments=segments, segments_per_verifier=q, verifiers=verifiers, share=0.5, accounts=accounts
    )
    assert abs(totals.mean() - float(exact)) < 4 * error


def test_splitting_earns_a_little_more_and_never_less() -> None:
    case = {"segments": 50, "segments_per_verifier": 4, "verifiers": 3}
    gains = [split_advantage(**case, share=0.2, accounts=n, audit_fee=1.0) for n in (1, 2, 4, 1000)]
    assert gains[0] == 0
    assert gains == sorted(gains)
    whole = float(expected_duties(**case, share=0.2))
    limit = 3 * 0.2 * (1 + 4 * 49 / 50)
    assert gains[-1] == pytest.approx(limit - whole, rel=2e-3)


@pytest.mark.parametrize(("segments", "q"), [(50, 4), (8, 8), (1, 1)])
def test_what_splitting_earns_small_owners_to_second_order(segments: int, q: int) -> None:
    share, accounts, verifiers = 1e-5, 4, 3
    got = split_advantage(
        segments=segments,
        segments_per_verifier=q,
        verifiers=verifiers,
        share=share,
        accounts=accounts,
        audit_fee=1.0,
    )
    pairs = (1 - 1 / accounts) * verifiers * (verifiers - 1) / 2 * share**2
    assert got == pytest.approx(pairs * (1 + (segments - 1) * q**2 / segments**2), rel=1e-4)


@pytest.mark.parametrize("stake", [0, 1, 7, 100, 10**18 + 1])
@pytest.mark.parametrize("reward", [0, 5, 90])
@pytest.mark.parametrize("restitution", [0, 40])
def test_conceding_to_oneself_always_costs_a_quarter(stake: int, reward: int, restitution: int) -> None:
    split = slash_split(stake, reward, restitution)
    for own in (False, True):
        got = self_challenge(stake=stake, reward=reward, restitution=restitution, own_task=own)
        assert got.net_cost == stake - split.rewarded - (split.restored if own else 0)
        assert got.net_cost >= got.burned == -(-stake // 4)
    assert (
        least_effective_stake(stake=stake, reward=reward, restitution=restitution)
        == split.burned + split.rest
    )


def test_at_the_least_stake_of_terms_only_the_quarter_is_at_risk() -> None:
    for reward in (1, 2, 3, 50, 1001):
        stake = (4 * reward + 2) // 3  # TermsCheck
        assert least_effective_stake(stake=stake, reward=reward, restitution=0) == -(-stake // 4)


def test_conceding_beats_expiring_only_with_a_large_penalty() -> None:
    assert not concession_pays(stake=100, reward=75, delay_penalty=25)
    assert concession_pays(stake=100, reward=75, delay_penalty=26)
    assert not concession_pays(stake=100, reward=30, delay_penalty=70)
    assert concession_pays(stake=100, reward=30, delay_penalty=70, restitution=10, own_task=True)
    with pytest.raises(TheoryError, match="at most the stake"):
        concession_pays(stake=100, reward=1, delay_penalty=101)
