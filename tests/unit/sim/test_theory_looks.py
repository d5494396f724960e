"""Second looks: the closed forms are compared with sums over all picks and all orders of lookers, and with
the protocol's bounds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import inf

import pytest

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES
from protocol.tasks.amounts import derive
from protocol.tasks.economics import expected_looks
from sim.recommendation import setting_of
from sim.theory import (
    Looking,
    TheoryError,
    caught_seat,
    earned,
    gain_of_skipping,
    looks_by_level,
    skipping_by_level,
    tipping_share,
)

PLAIN = Looking(verifiers=1, segments=1, chance=0.1, fee=1.0, replay=1.0, lock=40.0)


def recommended(segments: int) -> Looking:
    """Recommended terms scaled to a budget of 1. A replay costs the whole fee, and gas is left out."""
    terms = derive(replace(setting_of(segments, 1_000 * CHAIN_TOKEN), look_chance=None), RULES)
    budget = 1_000 * CHAIN_TOKEN
    return Looking(
        verifiers=terms.verifiers,
        segments=terms.segments_per_verifier,
        chance=terms.look_chance / 10_000,
        fee=terms.audit_fee / budget,
        replay=terms.audit_fee / budget,
        lock=terms.seat_lock / budget,
        accuse=terms.game_cost / budget,
    )


@pytest.mark.parametrize(("slots", "chance"), [(1, 0.3), (2, 0.5), (3, 0.1), (3, 1.0)])
def test_looks_of_each_level_are_counted_as_they_are_picked(slots: int, chance: float) -> None:
    """The expected means are sums over all outcomes of coins. There is one coin for each slot and level. A
    level can pick a slot only if the level below picked it; the first level can pick every slot.
    """
    means = [0.0] * 4
    for coins in product((0, 1), repeat=4 * slots):
        weight, below, left = 1.0, [1] * slots, slots
        for coin in coins:
            weight *= chance if coin else 1 - chance
        for level in range(4):
            here = [below[n] & coins[level * slots + n] for n in range(slots)]
            for n in range(slots):
                here[n] &= sum(here[:n]) < left
            left -= sum(here)
            means[level] += weight * sum(here)
            below = here
    assert looks_by_level(slots=slots, chance=chance) == pytest.approx(means, abs=1e-12)


@pytest.mark.parametrize("slots", [1, 3, 12, 32])
@pytest.mark.parametrize("percent", [1, 10, 50, 100])
def test_the_protocol_expects_no_fewer_looks(slots: int, percent: int) -> None:
    exact = looks_by_level(slots=slots, chance=percent / 100).sum()
    bound = float(expected_looks(100 * percent, slots))
    assert exact <= bound + 1e-9
    if percent <= 10:
        assert bound <= 1.12 * exact


@pytest.mark.parametrize(("segments", "accounts", "skippers"), [(1, 2, 1), (2, 4, 2), (3, 5, 4)])
def test_a_seat_is_caught_by_the_lookers_that_replay(segments: int, accounts: int, skippers: int) -> None:
    """Account 0 has the seat. The expected chance is a sum over all picks of segments and all orders of the
    other accounts.
    """
    chance, kept = 0.3, 0.0
    orders = list(permutations(range(1, accounts)))
    for coins in product((0, 1), repeat=segments):
        weight = 1.0
        for coin in coins:
            weight *= chance if coin else 1 - chance
        blind = sum(all(looker < skippers for looker in order[: sum(coins)]) for order in orders)
        kept += weight * blind / len(orders)
    found = caught_seat(segments=segments, chance=chance, accounts=accounts, skippers=skippers)
    assert found == pytest.approx(1 - kept)


def test_more_looks_of_a_seat_than_other_accounts_are_refused() -> None:
    with pytest.raises(TheoryError, match="accounts must be at least 4, got 3"):
        caught_seat(segments=3, chance=0.3, accounts=3, skippers=1)


def test_what_two_accounts_earn_with_one_seat() -> None:
    """Each account has the seat in half of the tasks. In one task of ten, the other account has the only look."""
    both = earned(PLAIN, accounts=2, skippers=1)
    assert both.caught == pytest.approx(0.05)
    assert both.skipping == pytest.approx(0.5 * 1.1 * 1.0 - 0.05 * (40 + 1))
    assert both.replaying == pytest.approx(0.05 * 20)
    lazy = earned(PLAIN, accounts=2, skippers=1, in_seats=False)
    assert lazy.caught == 0
    assert lazy.skipping == pytest.approx(0.5 * 0.1)


@pytest.mark.parametrize("segments", [5, 20, 60, 120, 300, 1000])
def test_with_recommended_terms_skipping_pays_at_no_share(segments: int) -> None:
    looking = recommended(segments)
    assert tipping_share(looking, accounts=200) == inf
    for skippers in (1, 100, 199):
        assert gain_of_skipping(looking, accounts=200, skippers=skippers) < 0
    if looking.segments == 1 and segments <= 120:
        half = looking._replace(lock=looking.lock / 2)
        assert 0.2 < tipping_share(half, accounts=200) < 0.8


@pytest.mark.parametrize("segments", [5, 20, 60, 120, 300, 1000])
def test_in_equilibrium_at_most_a_tenth_skips(segments: int) -> None:
    looking = recommended(segments)
    found = skipping_by_level(looking)
    assert len(found.by_level) == min(4, looking.slots) + 1
    assert not any(found.by_level[:-2])
    assert 0 < found.by_level[-2] < 0.1
    assert found.overall < 0.01


def test_with_one_segment_of_all_seats_nobody_looks_at_a_look() -> None:
    """Less than a tenth of the seats skip the replay, but more than a tenth of the looks do."""
    seat, look = skipping_by_level(recommended(60)._replace(verifiers=1)).by_level
    assert 0 < seat < 0.1 < look < 1


def test_nobody_gains_by_doing_otherwise_in_equilibrium() -> None:
    looking = recommended(120)
    cost, half, e = looking.replay, looking.lock / 2, looking.chance
    shares = skipping_by_level(looking).by_level
    prize = half - looking.accuse
    for level in range(5):
        below = shares[level - 1] if level else 0.0
        above = e * (1 - shares[level + 1]) if level < 4 else 0.0
        gain = cost - below * prize - above * half
        assert gain == pytest.approx(0, abs=1e-12) if 0 < shares[level] < 1 else gain < 0


def test_a_lock_that_is_too_small_has_no_such_equilibrium() -> None:
    for chance, lock in ((0.0, 40.0), (0.1, 20.0), (0.1, 0.0)):
        with pytest.raises(TheoryError, match="expected it to deter seats"):
            skipping_by_level(PLAIN._replace(chance=chance, lock=lock))


def test_the_rule_bears_a_share_of_lookers_that_skip() -> None:
    """A caught skipper is assumed to lose half of its lock. If a share h of the lookers replays, the
    skipper's average loss equals what skipping saves.
    """
    looking = recommended(60)
    assert looking.chance * float(RULES.honest_share) * looking.lock / 2 == pytest.approx(
        looking.fee, rel=1e-6
    )
    assert Fraction(7, 10) == RULES.honest_share
