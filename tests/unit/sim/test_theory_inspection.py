"""The verifier's dilemma: no deviation from an equilibrium pays, payoffs equal sums over events, and the
thresholds of the remedies are correct.
"""

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
    gain_against_cheater,
    inspection_equilibrium,
    least_attestation_fee,
    needed_chance,
    reward_for_rate,
    verifier_payoffs,
)

PLAIN = Duty(audit_fee=4, cost=3, reward=20, game_cost=2, held=0.25)
SOLVER: dict[str, float] = {"share": 0.5, "price": 100, "gain": 40, "stake": 300, "cost": 80}


def solver_gains(checking: float, hit: float, solver: dict[str, float]) -> float:
    """How much more a solver gains by cheating than by honest work, if the verifier replays with chance
    `checking`.
    """
    caught = checking * hit
    return solver["share"] * solver["cost"] + solver["gain"] - caught * (solver["stake"] + solver["price"])


def stable(found: Equilibrium, verifier: float, solver: float) -> bool:
    """Whether no deviation pays: a mixing party is indifferent, and a pure one gains nothing by switching."""
    return all(
        gain == pytest.approx(0, abs=1e-9) if 0 < rate < 1 else (gain >= -1e-9 if rate == 1 else gain <= 1e-9)
        for rate, gain in ((found.checking, verifier), (found.cheating, solver))
    )


@pytest.mark.parametrize(
    "duty",
    [
        PLAIN,
        Duty(4, 3, 5),
        Duty(4, 9, 8),
        Duty(4, 0, 8),
        Duty(0, 1, 30),
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
    hit = 0.25
    sums = dict.fromkeys(("verify_honest", "verify_cheat", "skip_honest", "skip_cheat"), 0.0)
    for drawn in (False, True):
        chance = hit if drawn else 1 - hit
        sums["verify_honest"] += chance * (PLAIN.audit_fee - PLAIN.cost)
        convicts = PLAIN.reward + PLAIN.game_cost if drawn else 0
        sums["verify_cheat"] += chance * (convicts + PLAIN.audit_fee - PLAIN.cost)
        sums["skip_honest"] += chance * PLAIN.audit_fee
        sums["skip_cheat"] += chance * PLAIN.audit_fee
    for name, value in verifier_payoffs(PLAIN, hit=hit)._asdict().items():
        assert value == pytest.approx(sums[name], rel=1e-12)


def test_plain_attestations_leave_the_classic_rates() -> None:
    """The rate of cheating is k / (R + g), which depends only on the verifier's amounts: the cost k of the
    replays, the reward R and the game cost g. The rate of checking is (f c + G) / (S + p), which depends only
    on the solver's: the false share f, the cost c, the gain G, the stake S and the price p.
    """
    found = inspection_equilibrium(PLAIN, **SOLVER)
    assert found.cheating == pytest.approx(3 / 22)
    assert found.checking == pytest.approx(80 / 400)
    richer = inspection_equilibrium(PLAIN, **{**SOLVER, "stake": 10**6})
    assert richer.cheating == found.cheating
    assert richer.checking < found.checking / 1000
    assert cheating_rate(PLAIN._replace(audit_fee=12)) == found.cheating
    assert reward_for_rate(cost=3, game_cost=2, cheating=3 / 22) == pytest.approx(20)
    with pytest.raises(TheoryError, match="no reward ends fraud"):
        reward_for_rate(cost=3, game_cost=2, cheating=0)


def test_committee_gain_sums_over_the_other_finders() -> None:
    """The gain equals a direct sum over all combinations of three facts: which of the other verifiers find
    the fraud, whether this verifier's segments include a false one, and whether its seat has the convicted
    segment.
    """
    hit, z, verifiers, duty = 0.25, 0.2, 4, PLAIN
    total = 0.0
    for *others, drawn, held in product((False, True), repeat=verifiers + 1):
        chance = (hit if drawn else 1 - hit) * (duty.held if held else 1 - duty.held)
        for finds in others:
            chance *= z if finds else 1 - z
        skipping = 0.0 if any(others) and held else duty.audit_fee
        convicts = duty.reward / (1 + sum(others)) + duty.game_cost if drawn else 0.0
        total += chance * (convicts + duty.audit_fee - duty.cost - skipping)
    got = gain_against_cheater(duty, hit=hit, verifiers=verifiers, found=z)
    assert got == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    "duty", [PLAIN, Duty(4, 3, 100, 1, 0.5), Duty(1, 3, 9), Duty(5, 1, 0), Duty(4, 0, 8)]
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


def test_taking_part_is_worth_it_from_the_cost_on() -> None:
    assert least_attestation_fee(cost=3) == 3


@pytest.mark.parametrize("duty", [Duty(-1, 0, 0), Duty(1, -1, 1), Duty(1, 1, -0.1)])
def test_impossible_duties_are_refused(duty: Duty) -> None:
    with pytest.raises(TheoryError, match="must be"):
        verifier_payoffs(duty)


@pytest.mark.parametrize("verifiers", [1, 5])
def test_a_committee_whose_others_find_nothing_is_a_lone_verifier(verifiers: int) -> None:
    pay = verifier_payoffs(PLAIN, hit=0.5)
    gain = gain_against_cheater(PLAIN, hit=0.5, verifiers=verifiers, found=0.0)
    assert gain == pytest.approx(pay.verify_cheat - pay.skip_cheat, rel=1e-12)
