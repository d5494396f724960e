"""The theory of colluders, Sybils and self-challenges is compared with the formulas for catching a cheater
and for the gain from cheating, with enumerated draws, and with the split of a slash.
"""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sim.theory import (
    TheoryError,
    caught_by_others,
    caught_probability,
    cheating_advantage,
    collusion_threshold,
    concession_pays,
    least_effective_stake,
    missed_probability,
    seats_law,
    self_challenge,
)

AUDIT: dict[str, Any] = {"segments": 20, "segments_per_verifier": 4, "verifiers": 4}
MONEY: dict[str, Any] = {"price": 10.0, "gain": 10.0, "stake": 300.0, "cost": 8.0}


@pytest.mark.parametrize("accounts", [None, 40])
def test_threshold_is_where_cheating_starts_to_pay(accounts: int | None) -> None:
    share = collusion_threshold(**AUDIT, **MONEY, accounts=accounts)
    assert 0 < share < 1
    for colluding, pays in ((share - 1e-9, False), (share + 1e-9, True)):
        advantage = cheating_advantage(
            **AUDIT, **MONEY, false=np.arange(1, 21), honest=1 - colluding, accounts=accounts
        )
        assert bool(np.any(advantage > 0)) == pays


def test_threshold_at_its_limits() -> None:
    assert collusion_threshold(**AUDIT, **{**MONEY, "gain": 10.0**6}) == 0
    # If nothing is won, no honest account is needed.
    assert collusion_threshold(**AUDIT, **{**MONEY, "gain": 0.0, "cost": 0.0}) == 1


def enumerate_owner(accounts: int, slots: int, others: int, seats: int) -> np.ndarray[Any, Any]:
    """The distribution of the number of seats that an owner gets. It is computed by enumerating every order
    in which distinct accounts can be drawn, and adding up the chances of these orders. Each draw picks an
    account with a chance in proportion to its slots.
    """
    held = [slots] * accounts + [1] * others
    law = np.zeros(seats + 1)
    for order in permutations(range(len(held)), seats):
        chance, left = 1.0, sum(held)
        for account in order:
            chance, left = chance * held[account] / left, left - held[account]
        law[sum(account < accounts for account in order)] += chance
    return law


@pytest.mark.parametrize(("accounts", "slots"), [(1, 4), (2, 2), (4, 1), (0, 1), (3, 8)])
def test_the_law_of_seats_is_that_of_all_draws(accounts: int, slots: int) -> None:
    law = seats_law(verifiers=3, accounts=accounts, others=4, slots=slots)
    assert np.allclose(law, enumerate_owner(accounts, slots, 4, 3), atol=1e-15)
    assert law.sum() == pytest.approx(1)


def test_an_account_has_one_seat_however_much_it_staked() -> None:
    whole, split = (seats_law(verifiers=3, accounts=n, others=16, slots=16 // n) for n in (1, 16))
    assert whole[2:].tolist() == [0, 0]
    assert whole @ np.arange(4) < split @ np.arange(4) == pytest.approx(1.5)
    with pytest.raises(TheoryError, match="at least 3 seats, got 2"):
        seats_law(verifiers=3, accounts=1, others=1)


def test_others_find_what_all_of_equal_stake_would() -> None:
    missed = missed_probability(20, np.arange(1, 21), 4)
    law = seats_law(verifiers=4, accounts=6, others=14)
    expected = caught_probability(20, np.arange(1, 21), 4, 4, 0.7, accounts=20)
    assert np.allclose(caught_by_others(law, missed), expected, atol=1e-12)


@pytest.mark.parametrize("stake", [4, 7, 100, 10**18 + 1])
@pytest.mark.parametrize("seats", [0, 3])
def test_conceding_to_oneself_always_costs_a_quarter(stake: int, seats: int) -> None:
    """However the stake is divided, at most three quarters of it are paid out. So an owner that challenges
    itself always loses at least a quarter.
    """
    most = stake - -(-stake // 4)
    pay = most // 8
    for reward in range(0, most - seats * pay + 1, max(1, most // 5)):
        rest = most - seats * pay - reward
        for own in (False, True):
            got = self_challenge(
                stake=stake, reward=reward, restitution=rest, seats=seats, seat_pay=pay, own_task=own
            )
            assert got.net_cost == stake - reward - seats * pay - (rest if own else 0)
            assert got.net_cost >= -(-stake // 4)
        least = least_effective_stake(stake=stake, reward=reward, restitution=rest, seats=seats, seat_pay=pay)
        assert least == -(-stake // 4)


def test_more_than_three_quarters_cannot_be_owed() -> None:
    with pytest.raises(TheoryError, match="three quarters of the stake 100, got 76"):
        self_challenge(stake=100, reward=50, restitution=26)


def test_conceding_beats_expiring_only_with_a_large_penalty() -> None:
    assert not concession_pays(stake=100, reward=75, delay_penalty=25)
    assert concession_pays(stake=100, reward=75, delay_penalty=26)
    assert not concession_pays(stake=100, reward=30, delay_penalty=70)
    # The submitter gets half of the penalty back, so 35 are lost. A conviction costs 60.
    assert not concession_pays(stake=100, reward=30, delay_penalty=70, restitution=10, own_task=True)
    assert not concession_pays(stake=100, reward=50, delay_penalty=50, restitution=25, own_task=True)
    assert concession_pays(stake=100, reward=50, delay_penalty=52, restitution=25, own_task=True)
    with pytest.raises(TheoryError, match="at most the stake"):
        concession_pays(stake=100, reward=1, delay_penalty=101)
