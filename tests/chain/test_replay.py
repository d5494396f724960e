"""The simulation's agents on the real contracts: every story ends as expected, with the balances that the
engine computes.

A replay compares all balances after each event. Most of these tests also check gains by closed formulas.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.replay.amounts import Amounts
from sim.replay.comparison import Comparison
from sim.replay.scenarios import market, scenario
from tests.chain.conftest import Replayed

pytestmark = pytest.mark.chain


def played(replayed: Replayed, name: str) -> tuple[Comparison, Amounts]:
    """Replay a story and check that it ends as expected; returns the comparison and the story's amounts."""
    story = scenario(name)
    said: list[str] = []
    ended = replayed(story, said.append)
    assert ended.outcomes == story.outcomes
    assert ended.events == tuple(said)
    assert not ended.differing
    assert ended.compared > len(said) * 20
    return ended, Amounts.of(story.parameters)


def of(ended: Comparison, kind: str) -> int:
    """The total gain of all parties of a kind."""
    return sum(gain for name, gain in ended.gains.items() if name.startswith(kind))


def burned(ended: Comparison) -> int:
    """Token units that the vault has burned."""
    (found,) = (line.chain for line in ended.lines if line.place == ("vault", "burned"))
    return found


def test_an_honest_task_settles(replayed: Replayed) -> None:
    """Two seats of two segments each."""
    ended, amounts = played(replayed, "honest")
    assert of(ended, "verifier") == 4 * amounts.audit_fee
    assert of(ended, "drawer") == amounts.draw_fee
    assert of(ended, "solver") > 0 == burned(ended)


def test_a_cheat_is_judged_and_slashed(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "cheat")
    spoke = amounts.game_cost + 2 * amounts.audit_fee
    assert ended.judged == ("replayed > scaled, instruction 2 (mul)",)
    assert of(ended, "solver") == -amounts.stake
    assert of(ended, "verifier") == amounts.reward + spoke
    assert of(ended, "submitter") == amounts.restitution - amounts.draw_fee
    assert burned(ended) == amounts.stake - amounts.reward - amounts.restitution - spoke


def test_false_challenges_cost_their_bonds(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "false_challenge")
    bond = amounts.bond
    assert bond % 2, "an even bond has no rounding to see"
    assert of(ended, "bystander") == -2 * bond
    assert burned(ended) == 2 * (bond - bond // 2)
    assert sum("has nothing to show" in event for event in ended.events) == 2


def test_a_missed_deadline_pays_half_of_the_penalty(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "deadline")
    penalty = amounts.delay_penalty
    assert penalty % 2, "an even penalty has no rounding to see"
    assert of(ended, "solver") == -penalty
    assert of(ended, "submitter") == penalty // 2
    assert burned(ended) == penalty - penalty // 2
    assert of(ended, "drawer") == 0


def test_a_task_without_a_bid_moves_nothing(replayed: Replayed) -> None:
    ended, _ = played(replayed, "no_bid")
    assert set(ended.gains.values()) == {0}


def test_a_cancelled_task_moves_nothing(replayed: Replayed) -> None:
    ended, _ = played(replayed, "cancelled")
    assert set(ended.gains.values()) == {0}


def test_the_first_of_two_silent_accounts_pays_the_draw(replayed: Replayed) -> None:
    """There are three seats of two segments each. Each of the two silent accounts loses the fee of a seat and
    the fee of a draw.
    """
    ended, amounts = played(replayed, "silent_seat")
    fee = 2 * amounts.audit_fee
    assert of(ended, "submitter") + of(ended, "solver") == -3 * fee - amounts.draw_fee
    assert of(ended, "drawer") == 2 * amounts.draw_fee
    assert burned(ended) == 2 * fee + amounts.draw_fee
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [-fee - amounts.draw_fee] * 2 + [fee] * 3


def test_an_accuser_loses_its_bond_and_its_seat(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "accuser")
    fee, bond = 2 * amounts.audit_fee, amounts.bond
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [-bond - fee - amounts.draw_fee, 0, fee]
    assert burned(ended) == bond - bond // 2 + fee


def test_a_seat_that_nobody_fills_voids_the_task(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "empty_seat")
    fee = 2 * amounts.audit_fee
    assert of(ended, "drawer") == 8 * amounts.draw_fee
    assert of(ended, "verifier") == fee
    assert of(ended, "submitter") == -8 * amounts.draw_fee - fee
    assert of(ended, "solver") == burned(ended) == 0


def test_who_attested_a_stalled_task_is_paid_and_the_solver_is_not(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "unattested")
    fee = 2 * amounts.audit_fee
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [-fee - amounts.draw_fee, 0, 0, fee]
    assert of(ended, "solver") == 0
    assert of(ended, "submitter") == -fee - amounts.draw_fee
    assert burned(ended) == fee


def test_half_of_the_price_of_a_task_that_is_never_drawn(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "beacon_stops")
    (price,) = (int(event.split()[-1]) for event in ended.events if " bids " in event)
    assert price % 2, "an even price has no rounding to see"
    assert of(ended, "solver") == price // 2
    assert of(ended, "submitter") == -(price // 2) - amounts.draw_fee
    assert of(ended, "verifier") == burned(ended) == 0
    assert "task 1: drawn after its end" in ended.events


@pytest.mark.parametrize(("name", "silent"), [("retrained", 1), ("retrained_undrawn", 0)])
def test_whoever_retrains_convicts_a_stalled_task(replayed: Replayed, name: str, silent: int) -> None:
    ended, amounts = played(replayed, name)
    fee, reward = 2 * amounts.audit_fee, amounts.retrain_reward
    assert reward != amounts.reward, "else nothing tells which was paid"
    assert any(event == "task 1: stalled" for event in ended.events)
    assert len(ended.judged) == 1
    assert of(ended, "solver") == -amounts.stake
    assert of(ended, "bystander") == reward
    assert of(ended, "submitter") == amounts.restitution - amounts.draw_fee
    assert of(ended, "verifier") == -silent * (fee + amounts.draw_fee)
    assert burned(ended) == amounts.stake - reward - amounts.restitution + silent * fee


@pytest.mark.parametrize(
    ("name", "owed"),
    [("silent", ("game_cost", "fee")), ("asleep", ()), ("unnamed", ("fee", "fee"))],
)
def test_silence_convicts(replayed: Replayed, name: str, owed: tuple[str, ...]) -> None:
    """In `asleep` both seats have attested the convicted segment; in `unnamed` no segment was named."""
    ended, amounts = played(replayed, name)
    paid = amounts.reward + sum(
        2 * amounts.audit_fee if each == "fee" else amounts.game_cost for each in owed
    )
    assert of(ended, "solver") == -amounts.stake
    assert of(ended, "verifier") + of(ended, "bystander") == paid
    assert burned(ended) == amounts.stake - amounts.restitution - paid
    assert not ended.judged


def test_the_earlier_commitment_is_rewarded_and_moot(replayed: Replayed) -> None:
    """A bystander convicts the solver. The seat that committed first gets the reward. In addition, each of
    the two seats gets the cost of a game plus a fee.
    """
    ended, amounts = played(replayed, "two_challengers")
    spoke = amounts.game_cost + amounts.audit_fee
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [spoke, amounts.reward + spoke]
    assert of(ended, "bystander") == 0
    assert sum("is moot" in event for event in ended.events) == 2


def test_a_seat_that_an_accomplice_preempted_is_whole(replayed: Replayed) -> None:
    """The seat opens its commitment late, and gets the cost of a game and its fee. The other seat, which
    attested the other segment, gets its fee.
    """
    ended, amounts = played(replayed, "preempted")
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [amounts.audit_fee, amounts.game_cost + amounts.audit_fee]
    assert of(ended, "submitter") == amounts.reward + amounts.restitution - amounts.draw_fee
    assert burned(ended) == amounts.stake - amounts.reward - amounts.restitution - sum(gains)


def test_who_vouched_for_what_was_convicted_has_nothing(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "vouched")
    gains = sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier"))
    assert gains == [0, amounts.audit_fee]
    assert of(ended, "bystander") == amounts.reward
    assert burned(ended) == amounts.stake - amounts.reward - amounts.restitution - amounts.audit_fee


def test_commitments_that_are_not_opened_burn_their_bonds(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "forgetful")
    spoke = amounts.game_cost + 2 * amounts.audit_fee
    assert of(ended, "bystander") == -2 * amounts.bond
    assert burned(ended) == amounts.stake - amounts.reward - amounts.restitution - spoke + 2 * amounts.bond


def test_the_seventeenth_bond_is_twice_the_others(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "crowd")
    bond = amounts.bond
    assert of(ended, "bystander") == -18 * bond
    assert burned(ended) == 16 * (bond - bond // 2) + bond


def test_late_bids_end_at_a_small_price(replayed: Replayed) -> None:
    ended, amounts = played(replayed, "late_bids")
    *_, price = (int(event.split()[-1]) for event in ended.events if " bids " in event)
    assert 0 < price < amounts.audit_fee
    assert of(ended, "solver") == price
    assert of(ended, "verifier") == 2 * amounts.audit_fee


def test_colluders_settle_what_is_false(replayed: Replayed) -> None:
    ended, _ = played(replayed, "collusion")
    assert of(ended, "solver") > 0


def looked(name: str) -> tuple[Amounts, int]:
    """The amounts of a story with looks, and the lock of a seat."""
    story = scenario(name)
    amounts = Amounts.of(story.parameters)
    return amounts, amounts.seat_lock(story.parameters)


def verifiers(ended: Comparison) -> list[int]:
    """The nonzero gains of verifiers, sorted."""
    return sorted(gain for name, gain in ended.gains.items() if name.startswith("verifier") and gain)


def test_every_segment_is_looked_at_and_every_look_paid(replayed: Replayed) -> None:
    """There are two seats of two segments each. Each segment of each seat gets one look. These four looks are
    all that the task may have, so there is no second level.
    """
    ended, amounts = played(replayed, "looked")
    assert verifiers(ended) == [amounts.audit_fee] * 4 + [2 * amounts.audit_fee] * 2
    assert of(ended, "drawer") == 2 * amounts.draw_fee
    assert of(ended, "submitter") + of(ended, "solver") == -8 * amounts.audit_fee - 2 * amounts.draw_fee
    assert burned(ended) == 0


def test_looks_at_looks_at_looks_at_looks(replayed: Replayed) -> None:
    """The first level has two looks. The second level has one look, at one of these two. Each later level has
    one look, at the look of the level before.
    """
    ended, amounts = played(replayed, "levels")
    levels = [event for event in ended.events if ": looks of level" in event and "drawn" in event]
    assert [event.split(" at slots ")[1] for event in levels] == ["[1, 2]", "[1]", "[1]", "[1]"]
    assert verifiers(ended) == [amounts.audit_fee] * 5 + [3 * amounts.audit_fee] * 2
    assert of(ended, "drawer") == 5 * amounts.draw_fee
    assert burned(ended) == 0


def test_a_digest_that_is_not_opened_costs_the_lock_once(replayed: Replayed) -> None:
    """There are two looks at one seat. The lock is an odd number: the first look gets half of it, rounded
    down. The seat gets no fee.
    """
    ended, amounts = played(replayed, "unopened")
    _, lock = looked("unopened")
    assert lock % 2, "an even lock has no rounding to see"
    fee = amounts.audit_fee
    assert verifiers(ended) == [-lock, fee, fee + lock // 2]
    assert burned(ended) == lock - lock // 2
    assert of(ended, "submitter") + of(ended, "solver") == -2 * fee - 2 * amounts.draw_fee


def test_a_stamp_that_cannot_answer_loses_its_lock(replayed: Replayed) -> None:
    """The looker pays the solver for its step tree, and gets the accusation's bond back."""
    ended, amounts = played(replayed, "stamped")
    _, lock = looked("stamped")
    fee, cost = amounts.audit_fee, amounts.game_cost
    assert verifiers(ended) == [-lock, fee, fee + lock // 2 - cost]
    assert burned(ended) == lock - lock // 2
    assert of(ended, "submitter") + of(ended, "solver") == cost - 2 * fee - 2 * amounts.draw_fee
    assert sum(" accuses " in event for event in ended.events) == 1


def test_an_accused_seat_that_answers_has_the_bond(replayed: Replayed) -> None:
    """Two seats of one segment each are accused and answer. Each looker loses its bond to the seat, and also
    pays the solver for its step tree.
    """
    ended, amounts = played(replayed, "slandered")
    fee, cost = amounts.audit_fee, amounts.game_cost
    assert verifiers(ended) == [fee - 2 * cost] * 2 + [fee + cost] * 2
    assert sum("is answered" in event for event in ended.events) == 2
    assert burned(ended) == 0


def test_looks_that_are_silent_three_times_are_given_up(replayed: Replayed) -> None:
    """Two looks are drawn three times, and each time both accounts are silent. After each of the first two
    draws, the draw fee of one of the two accounts pays for the next draw.
    """
    ended, amounts = played(replayed, "given_up")
    fee = 2 * amounts.audit_fee
    assert verifiers(ended) == [-fee - amounts.draw_fee] * 6 + [fee]
    assert of(ended, "drawer") == 4 * amounts.draw_fee
    assert burned(ended) == 6 * fee + 4 * amounts.draw_fee
    assert of(ended, "submitter") + of(ended, "solver") == -fee - 2 * amounts.draw_fee


def test_a_look_that_nobody_is_found_for_costs_nothing(replayed: Replayed) -> None:
    """A seat should get two looks, but only one account can take a look. The other look is given up."""
    ended, amounts = played(replayed, "nobody_looks")
    assert verifiers(ended) == [amounts.audit_fee, 2 * amounts.audit_fee]
    assert of(ended, "drawer") == 2 * amounts.draw_fee
    assert burned(ended) == 0


def test_a_draw_that_finds_nobody_again_asks_for_the_next_level(replayed: Replayed) -> None:
    """One account has a seat, and all five others have a look of level 1. One of the five is silent, so its
    look is drawn again. That draw finds nobody, and asks for looks of level 2. Nobody is found for these
    either.
    """
    ended, amounts = played(replayed, "nobody_looks_again")
    levels = [event for event in ended.events if ": looks of level" in event and "drawn" in event]
    assert [event.split(" at slots ")[1] for event in levels] == ["[0, 1, 2, 3, 4]", "[2]"]
    lost = 8 * amounts.audit_fee + amounts.draw_fee
    assert verifiers(ended) == [-lost] + [amounts.audit_fee] * 4 + [8 * amounts.audit_fee]
    assert of(ended, "drawer") == 4 * amounts.draw_fee
    assert burned(ended) == 8 * amounts.audit_fee


def test_a_conviction_gives_an_open_accusations_bond_to_the_accused(replayed: Replayed) -> None:
    """Two seats with one look each: one look convicts the solver, the other has accused a correct seat."""
    ended, amounts = played(replayed, "moot")
    fee, cost, reward = amounts.audit_fee, amounts.game_cost, amounts.reward
    assert sum("is moot, the bond" in event for event in ended.events) == 1
    assert verifiers(ended) == sorted([fee - 2 * cost, fee + cost, fee + reward + cost])
    assert of(ended, "solver") == -amounts.stake + cost
    assert burned(ended) == amounts.stake - reward - amounts.restitution - cost - fee


def test_a_look_convicts_after_a_look_was_given_up_and_a_lock_lost(replayed: Replayed) -> None:
    """There are three seats of one segment each, and three looks. One look is silent three times, one finds a
    rubber stamp, and one finds a false segment. The last silent account pays for a draw that is then not
    made.
    """
    ended, amounts = played(replayed, "accused_late")
    _, lock = looked("accused_late")
    fee, cost, reward = amounts.audit_fee, amounts.game_cost, amounts.reward
    silent = [-fee - amounts.draw_fee] * 3
    assert verifiers(ended) == sorted([*silent, -lock, fee, fee + lock // 2 - cost, fee + reward + cost])
    stake = amounts.stake - reward - amounts.restitution - cost - fee
    assert burned(ended) == stake + lock - lock // 2 + 3 * fee + amounts.draw_fee


def test_a_level_that_is_asked_for_before_a_conviction_is_drawn_after_it(replayed: Replayed) -> None:
    """Every seat has attested the convicted segment: no look follows, and the escrow pays for the draw."""
    ended, amounts = played(replayed, "looked_late")
    assert "task 1: drawn after its end" in ended.events
    assert of(ended, "drawer") == 2 * amounts.draw_fee
    assert of(ended, "submitter") == amounts.restitution - 2 * amounts.draw_fee


@pytest.mark.parametrize(("seed", "exact"), [(1, True), (2, False)])
def test_tasks_with_looks_in_a_row_by_a_seed(replayed: Replayed, seed: int, exact: bool) -> None:
    ended = replayed(market(3, seed, exact=exact, name="looked_market"), lambda _event: None)
    assert len(ended.outcomes) == 3
    assert not ended.differing


def test_tasks_in_a_row_by_a_seed(replayed: Replayed) -> None:
    ended = replayed(market(6, 5), lambda _event: None)
    assert len(ended.outcomes) == 6
    assert not ended.differing


def test_the_engines_own_market_books_the_same(replayed: Replayed) -> None:
    """The engine counts amounts in whole units. After every task, the gains in its int64 ledger, times 10^12,
    equal the gains on the chain, apart from what is lost when odd amounts are halved. The bond and the
    penalty are halved, so this test makes them odd.
    """
    story = market(6, 10, exact=True)
    terms = story.parameters
    odd = terms.with_values({name: getattr(terms, name) | 1 for name in ("bond", "delay_penalty")})
    ended = replayed(replace(story, parameters=odd), lambda _event: None)
    assert "expired" in ended.outcomes
    assert len(ended.outcomes) == 6


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(100, 102))
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", ["market", "looked_market"])
def test_many_tasks_in_a_row(replayed: Replayed, seed: int, exact: bool, name: str) -> None:
    """Some tasks are convicted and some settled; which other outcomes occur depends on the seed."""
    ended = replayed(market(40, seed, exact=exact, name=name), lambda _event: None)
    assert len(ended.outcomes) == 40
    assert not ended.differing
    assert {"convicted", "settled"} < set(ended.outcomes)
