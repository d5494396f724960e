"""The verifier's dilemma: equilibria against every deviation, payoffs against a sum over events, remedies at
their thresholds."""

from itertools import product
from typing import Any

import pytest

from sim.theory import (
    Duty,
    Equilibrium,
    TheoryError,
    cheating_rate,
    checking_rate,
    committee_equilibrium,
    forced_cost,
    gain_against_cheater,
    inspection_equilibrium,
    least_attestation_fee,
    least_forced_rate,
    most_copied,
    needed_chance,
    reward_for_rate,
    verifier_payoffs,
)

PLAIN = Duty(audit_fee=4, cost=3, reward=20)
FLAGGED = Duty(audit_fee=4, cost=3, reward=20, lock=6, silent_lock=2, jackpot=10, forced=0.05, copied=0.75)
SOLVER: dict[str, float] = {"share": 0.5, "price": 100, "gain": 40, "stake": 300, "cost": 80}


def solver_gains(checking: float, hit: float, solver: dict[str, float]) -> float:
    """What cheating earns over honest work against a verifier that replays with chance `checking`."""
    caught = checking * hit
    return solver["share"] * solver["cost"] + solver["gain"] - caught * (solver["stake"] + solver["price"])


def stable(found: Equilibrium, verifier: float, solver: float) -> bool:
    """No deviation pays: who mixes is indifferent, who does not gains nothing by the other choice."""
    return all(
        gain == pytest.approx(0, abs=1e-9) if 0 < rate < 1 else (gain >= -1e-9 if rate == 1 else gain <= 1e-9)
        for rate, gain in ((found.checking, verifier), (found.cheating, solver))
    )


@pytest.mark.parametrize(
    "duty",
    [
        PLAIN,
        FLAGGED,
        Duty(4, 3, 5),
        Duty(4, 9, 8),
        Duty(2, 1, 9, silent_lock=3, copied=0.0),
        Duty(5, 4, 0, copied=0.0),
    ],
)
@pytest.mark.parametrize("hit", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("stake", [0.0, 20.0, 300.0])
@pytest.mark.parametrize("gain", [0.0, 40.0])
def test_no_deviation_from_an_equilibrium_pays(duty: Duty, hit: float, stake: float, gain: float) -> None:
    solver = {**SOLVER, "stake": stake, "gain": gain}
    found = inspection_equilibrium(duty, **solver, hit=hit)
    pay = verifier_payoffs(duty, hit=hit)
    honest, cheat = pay.verify_honest - pay.skip_honest, pay.verify_cheat - pay.skip_cheat
    replaying = (1 - found.cheating) * honest + found.cheating * cheat
    assert stable(found, replaying, solver_gains(found.checking, hit, solver))


def test_payoffs_sum_over_events() -> None:
    """Every event of a duty: flagged or not, the root leaked or not, a false segment drawn or not."""
    hit = 0.25
    d = FLAGGED
    sums = dict.fromkeys(("verify_honest", "verify_cheat", "skip_honest", "skip_cheat"), 0.0)
    for flagged, leaked, drawn in product((False, True), repeat=3):
        chance = (d.forced if flagged else 1 - d.forced) * (d.copied if leaked else 1 - d.copied)
        chance *= hit if drawn else 1 - hit
        if flagged:
            seal, differ = -d.lock, d.audit_fee + d.jackpot
        else:
            seal, differ = d.audit_fee, d.audit_fee
        skip = seal if leaked else -d.silent_lock
        sums["verify_honest"] += chance * (differ - d.cost)
        sums["verify_cheat"] += chance * ((d.reward if drawn else differ) - d.cost)
        sums["skip_honest"] += chance * skip
        sums["skip_cheat"] += chance * skip
    for name, value in verifier_payoffs(d, hit=hit)._asdict().items():
        assert value == pytest.approx(sums[name], rel=1e-12)


def test_plain_attestations_leave_the_classic_rates() -> None:
    """x = k / (R - F), y = (f c + G) / (S + p): each side's rate holds the other side's money."""
    found = inspection_equilibrium(PLAIN, **SOLVER)
    assert found.cheating == pytest.approx(3 / 16)
    assert found.checking == pytest.approx(80 / 400)
    richer = inspection_equilibrium(PLAIN, **{**SOLVER, "stake": 10**6})
    assert richer.cheating == found.cheating
    assert richer.checking < found.checking / 1000
    assert cheating_rate(PLAIN._replace(audit_fee=12)) > found.cheating
    assert reward_for_rate(cost=3, audit_fee=4, cheating=3 / 16) == pytest.approx(20)
    with pytest.raises(TheoryError, match="no reward ends fraud"):
        reward_for_rate(cost=3, audit_fee=4, cheating=0)


@pytest.mark.parametrize("duty", [PLAIN, FLAGGED])
def test_committee_gain_sums_over_flags_and_the_other_finders(duty: Duty) -> None:
    """Every event: which other seats find the fraud, a false segment drawn or not, flagged or not, the root learned or
    not. A conviction pays its finders and nobody else; without one, attestations are paid and fined.
    """
    hit, z, verifiers = 0.25, 0.2, 4
    total = 0.0
    for *others, drawn, flagged, learned in product((False, True), repeat=verifiers + 2):
        chance = hit if drawn else 1 - hit
        chance *= duty.forced if flagged else 1 - duty.forced
        chance *= duty.copied if learned else 1 - duty.copied
        for finds in others:
            chance *= z if finds else 1 - z
        replaying = skipping = 0.0
        if drawn:
            replaying = duty.reward / (1 + sum(others))
        elif not any(others):
            replaying = duty.audit_fee + (duty.jackpot if flagged else 0)
        if not learned:
            skipping = -duty.silent_lock
        elif not any(others):
            skipping = -duty.lock if flagged else duty.audit_fee
        total += chance * (replaying - duty.cost - skipping)
    got = gain_against_cheater(duty, hit=hit, verifiers=verifiers, found=z)
    assert got == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    "duty", [PLAIN, FLAGGED, Duty(4, 3, 100), Duty(1, 3, 9), Duty(5, 1, 0), Duty(5, 4, 0, copied=0.0)]
)
@pytest.mark.parametrize("verifiers", [1, 3, 8])
@pytest.mark.parametrize("stake", [0.0, 100.0, 3000.0])
def test_committee_equilibrium_is_stable(duty: Duty, verifiers: int, stake: float) -> None:
    case: dict[str, Any] = {**SOLVER, "stake": stake, "hit": 0.5, "verifiers": verifiers, "honest": 0.75}
    found = committee_equilibrium(duty, **case)
    z = 0.75 * 0.5 * found.checking
    pay = verifier_payoffs(duty, hit=0.5)
    replaying = (1 - found.cheating) * (pay.verify_honest - pay.skip_honest)
    replaying += found.cheating * gain_against_cheater(duty, hit=0.5, verifiers=verifiers, found=z)
    caught = 1 - (1 - z) ** verifiers
    cheating = solver_gains(caught, 1.0, {**SOLVER, "stake": stake})
    assert stable(found, replaying, cheating)


def test_committee_of_one_is_the_lone_verifier() -> None:
    one = committee_equilibrium(PLAIN, **SOLVER, hit=0.5, verifiers=1, honest=1.0)
    lone = inspection_equilibrium(PLAIN, **SOLVER, hit=0.5)
    assert one == pytest.approx(lone)


def test_checking_rate_makes_the_solver_indifferent() -> None:
    y = checking_rate(**SOLVER, hit=0.5, verifiers=4, honest=0.75)
    assert solver_gains(1 - (1 - 0.75 * 0.5 * y) ** 4, 1.0, SOLVER) == pytest.approx(0, abs=1e-9)
    assert checking_rate(**{**SOLVER, "stake": 0.0, "gain": 90.0}, hit=1, verifiers=4, honest=1) == 1
    assert checking_rate(**{**SOLVER, "gain": 0.0, "share": 0.0}, hit=1, verifiers=4, honest=1) == 0
    assert needed_chance(share=0, price=0, gain=1, stake=0, cost=0) == float("inf")


@pytest.mark.parametrize("copied", [1.0, 0.8])
def test_forced_errors_turn_the_choice_at_the_least_rate(copied: float) -> None:
    e = least_forced_rate(cost=3, jackpot=30, lock=26, audit_fee=4, copied=copied, silent_lock=0.25)
    assert 0 < e < 1
    for factor, better in ((0.999, False), (1.001, True)):
        duty = Duty(4, 3, 0, 26, 0.25, 30, e * factor, copied)
        pay = verifier_payoffs(duty)
        assert (pay.verify_honest > pay.skip_honest) == better
        # No fraud is needed for it, and then there is none.
        assert (inspection_equilibrium(duty._replace(reward=40), **SOLVER).cheating == 0) == better
    if copied == 1:
        assert e == pytest.approx(3 / 60)
        assert forced_cost(forced=e, jackpot=30, duties=10) == pytest.approx(10 * 3 * 30 / 60)


def test_forced_errors_have_limits() -> None:
    assert least_forced_rate(cost=0, jackpot=0, lock=0) == 0
    assert least_forced_rate(cost=3, jackpot=1, lock=1) == float("inf")
    assert least_forced_rate(cost=3, jackpot=1, lock=1, audit_fee=4, copied=0) == 0
    assert least_attestation_fee(cost=3, forced=0.05, jackpot=20) == 2
    assert least_attestation_fee(cost=3, forced=0.5, jackpot=20) == 0


@pytest.mark.parametrize("forced", [0.0, 0.02])
def test_interior_roots_hold_up_to_a_rate_of_leaks(forced: float) -> None:
    duty = Duty(audit_fee=4, cost=3, reward=0, lock=6, silent_lock=2, jackpot=10, forced=forced)
    y = most_copied(duty)
    assert 0 < y < 1
    if not forced:
        assert y == pytest.approx(1 - 3 / 6)
    for leaks, better in ((y - 0.001, True), (y + 0.001, False)):
        pay = verifier_payoffs(duty._replace(copied=leaks))
        assert (pay.verify_honest > pay.skip_honest) == better
    assert most_copied(duty._replace(cost=20)) == 0
    assert most_copied(duty._replace(forced=0.5)) == 1


@pytest.mark.parametrize("duty", [Duty(-1, 0, 0), Duty(1, 1, 1, forced=1.5), Duty(1, 1, 1, copied=-0.1)])
def test_impossible_duties_are_refused(duty: Duty) -> None:
    with pytest.raises(TheoryError, match="must be"):
        verifier_payoffs(duty)


@pytest.mark.parametrize("duty", [PLAIN, FLAGGED])
@pytest.mark.parametrize("verifiers", [1, 5])
def test_a_committee_whose_others_find_nothing_is_a_lone_verifier(duty: Duty, verifiers: int) -> None:
    pay = verifier_payoffs(duty, hit=0.5)
    gain = gain_against_cheater(duty, hit=0.5, verifiers=verifiers, found=0.0)
    assert gain == pytest.approx(pay.verify_cheat - pay.skip_cheat, rel=1e-12)
