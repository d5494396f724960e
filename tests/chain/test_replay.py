"""The simulation's agents on the real contracts: every story ends as it should, and every balance is the engine's.

A replay compares all balances after each event; here are, besides, the closed forms that each story must have met.
"""

from __future__ import annotations

import pytest

from protocol.tasks.economics import settle_split, slash_split
from sim.replay.amounts import Amounts
from sim.replay.comparison import Comparison
from sim.replay.scenarios import SCENARIOS, market, scenario
from tests.chain.conftest import Replayed

pytestmark = pytest.mark.chain

STORIES = [name for name, each in SCENARIOS.items() if each.outcomes is not None]


def played(replayed: Replayed, name: str) -> tuple[Comparison, Amounts]:
    """A story, ended as it should, and its amounts."""
    story = scenario(name)
    said: list[str] = []
    ended = replayed(story, said.append)
    assert ended.outcomes == story.outcomes
    assert ended.events == tuple(said)
    assert not ended.differing
    assert ended.compared > len(said) * 20
    return ended, Amounts.of(story.parameters)


def of(ended: Comparison, kind: str) -> int:
    """What all of a kind gained."""
    return sum(gain for name, gain in ended.gains.items() if name.startswith(kind))


def burned(ended: Comparison) -> int:
    """What the vault has burned."""
    (found,) = (line.chain for line in ended.lines if line.place == ("vault", "burned"))
    return found


def test_an_honest_task_settles(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "honest")
    duties = of(ended, "verifier") // amounts.audit_fee
    assert duties in (2, 4), "one verifier or both were drawn, for both segments"
    assert of(ended, "verifier") == duties * amounts.audit_fee
    assert of(ended, "drawer") == amounts.draw_fee
    assert of(ended, "solver") > 0 == burned(ended)


def test_a_cheat_is_judged_and_slashed(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "cheat")
    split = slash_split(amounts.stake, amounts.reward_cap, amounts.restitution)
    assert ended.judged == ("replayed > half, instruction 2 (mul)",)
    assert of(ended, "solver") == -amounts.stake
    assert of(ended, "verifier") == split.rewarded
    assert of(ended, "submitter") == split.restored - amounts.draw_fee
    assert burned(ended) == split.burned + split.rest


def test_false_challenges_cost_their_bonds(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "false_challenge")
    bond = amounts.challenge_bond
    assert bond % 2, "an even bond has no rounding to see"
    assert of(ended, "bystander") == -2 * bond
    assert burned(ended) == 2 * (bond - bond // 2)
    assert sum("has nothing to show" in event for event in ended.events) == 2


def test_an_unattested_task_is_void(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "absent")
    assert ended.gains["submitter"] == -amounts.draw_fee
    assert of(ended, "solver") == of(ended, "verifier") == burned(ended) == 0


def test_a_missed_deadline_burns_the_penalty(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "deadline")
    assert of(ended, "solver") == -amounts.delay_penalty == -burned(ended)
    assert of(ended, "submitter") == of(ended, "drawer") == 0


@pytest.mark.parametrize("name", ["silent", "asleep"])
def test_silence_convicts(replayed: Replayed, name: str) -> None:
    ended, amounts = played(replayed, name)
    split = slash_split(amounts.stake, amounts.reward_cap, amounts.restitution)
    assert of(ended, "solver") == -amounts.stake
    assert of(ended, "verifier") + of(ended, "bystander") == split.rewarded
    assert not ended.judged


def test_the_earlier_commitment_is_rewarded_and_moot(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "two_challengers")
    assert of(ended, "verifier") == amounts.reward_cap
    assert of(ended, "bystander") == 0
    assert any("game of verifier 1 (honest) is moot" in event for event in ended.events)


def test_missed_draws_are_paid_by_the_solver(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "missed_draw")
    assert sum("draw missed" in event for event in ended.events) == 2
    assert of(ended, "verifier") == 7 * amounts.audit_fee
    assert ended.gains["submitter"] + amounts.draw_fee + of(ended, "solver") == -7 * amounts.audit_fee
    # The escrow holds four fees; three are the solver's.
    price = -ended.gains["submitter"] - amounts.draw_fee - 4 * amounts.audit_fee
    assert of(ended, "solver") == price - 3 * amounts.audit_fee


def test_a_lost_draw_burns_the_stake(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "draw_lost")
    assert (
        sum("draw missed" in event for event in ended.events) == scenario("draw_lost").parameters.max_misses
    )
    assert of(ended, "solver") == -amounts.stake == -burned(ended)
    assert {gain for name, gain in ended.gains.items() if not name.startswith("solver")} == {0}


def test_fees_shrink_when_the_escrow_is_too_small(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "small_price")
    reserve = amounts.reserve(1, 3)
    *_, price = (int(event.split()[-1]) for event in ended.events if " bids " in event)
    split = settle_split(price, reserve, amounts.audit_fee, 7)
    assert split.each < amounts.audit_fee
    assert (reserve + price) % 7, "without a remainder there is no rounding to see"
    assert (of(ended, "verifier"), of(ended, "solver")) == (7 * split.each, split.to_solver)


def test_two_attestations_for_each_segment(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "two_matches")
    duties = of(ended, "verifier") // amounts.audit_fee
    assert duties in (3, 4), "two segments for one verifier and the last for the other, or both for both"


def test_colluders_settle_what_is_false(replayed: Replayed) -> None:
    ended, _ = played(replayed, "collusion")
    assert of(ended, "solver") > 0


@pytest.mark.parametrize("seed", [5, 8])
def test_tasks_in_a_row_by_a_seed(replayed: Replayed, seed: int) -> None:
    ended = replayed(market(6, seed), lambda _event: None)
    assert len(ended.outcomes) == 6
    assert not ended.differing


def test_the_engines_own_market_books_the_same(replayed: Replayed) -> None:
    """In whole units of the engine its int64 ledger, times 10^12, is the chain's: compared after every task."""
    ended = replayed(market(6, 3, exact=True), lambda _event: None)
    assert len(ended.outcomes) == 6


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize("exact", [False, True])
def test_many_tasks_in_a_row(replayed: Replayed, seed: int, exact: bool) -> None:
    """Which ends there are beside these two is a matter of the seed's luck."""
    ended = replayed(market(40, seed, exact=exact), lambda _event: None)
    assert len(ended.outcomes) == 40
    assert not ended.differing
    assert {"convicted", "settled"} < set(ended.outcomes)
