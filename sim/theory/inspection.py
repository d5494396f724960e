"""The verifier's dilemma: replaying is costly and unobservable, but only replaying keeps fraud rare.

The model is an inspection game. The solver cheats or is honest; a drawn verifier replays its seat's segments,
or skips them and attests what the solver says. Amounts are token units as floats; rates are chances. The
subject is a verifier's individual choice: the other modules assume an honest share h, which these equilibria
may or may not support.

Attestations are assumed to be plain: their root is not compared with anything, so a verifier that does not
replay can attest what the solver says.
"""

from typing import NamedTuple

from sim.theory.bounds import TheoryError, count, number

NEVER = float("inf")


class Duty(NamedTuple):
    """The value of a seat to its verifier.

    `audit_fee`: the seat's fee for an attestation. `cost`: cost of the replays. `reward`: paid to the first
    verifier that convicts. The caller should scale the reward by the chance that the verifier has priority
    over the cheater, because a cheater that is first to commit to a challenge of its own segments takes the
    reward. `game_cost`: the payment for a game, less the gas of the game. Every seat that challenged gets
    this payment, no matter which seat convicted. The bond is not subtracted, because it is returned. `held`:
    the chance q / K that a seat has the convicted segment. A seat that attested this segment gets no fee.
    """

    audit_fee: float
    cost: float
    reward: float
    game_cost: float = 0.0
    held: float = 0.0


class Payoffs(NamedTuple):
    """A verifier's expected amounts in the four cells of the game, each named by what the verifier and the
    solver do.
    """

    verify_honest: float
    verify_cheat: float
    skip_honest: float
    skip_cheat: float


class Equilibrium(NamedTuple):
    """The rates of an equilibrium. `cheating` is the rate of false submissions; `checking` is the share of
    seats that are replayed.
    """

    cheating: float
    checking: float


def checked(duty: Duty) -> Duty:
    """Return the duty; raise `TheoryError` for negative amounts."""
    for name, value in duty._asdict().items():
        number(name, value, 0)
    return duty


def verifier_payoffs(duty: Duty, *, hit: float = 1.0) -> Payoffs:
    """Return a lone verifier's payoffs, in token units.

    `hit` is 1 - a(f) (audit.md section 9): the chance that the seat's segments include a false one. With fee
    F, cost k, reward R and game_cost g:

    - replaying: F - k always; if a replayed segment is false, the verifier convicts and also earns R and g.
    - skipping: F, whether a segment is false or not, because nobody else can find it.
    """
    d = checked(duty)
    h = number("hit", hit, 0, 1)
    return Payoffs(
        verify_honest=d.audit_fee - d.cost,
        verify_cheat=h * (d.reward + d.game_cost) + d.audit_fee - d.cost,
        skip_honest=d.audit_fee,
        skip_cheat=d.audit_fee,
    )


def cheating_rate(duty: Duty, *, hit: float = 1.0) -> float:
    """Return x, the rate of cheating at which a lone verifier is indifferent between replaying and skipping.
    It is at least 0 and at most 1.

    The gain of replaying over skipping is A = verify_honest - skip_honest at x = 0. The gain changes linearly
    with x, to B = verify_cheat - skip_cheat at x = 1. So x = A / (A - B) = -A / (B - A) = k / (hit (R + g)).
    The rate x is 0 if replaying costs nothing (A >= 0), and 1 if replaying is never better (B <= 0). The rate
    does not depend on the stake, because a *solver's* stake does not make *verifiers* work. It does not
    depend on the fee either, because a seat receives the fee whatever it does.
    """
    pay = verifier_payoffs(duty, hit=hit)
    honest, cheat = pay.verify_honest - pay.skip_honest, pay.verify_cheat - pay.skip_cheat
    if honest >= 0:
        return 0.0
    if cheat <= 0:
        return 1.0
    return honest / (honest - cheat)


def checking_rate(
    *,
    share: float,
    hit: float,
    verifiers: int,
    honest: float,
    price: float,
    gain: float,
    stake: float,
    cost: float,
) -> float:
    """Return y, the rate of replaying at which a solver is indifferent between honest work and cheating with
    f = `share`. The result is at most 1.

    Here V is `verifiers`, c is `cost` (the solver's), G is `gain`, S is `stake` and p is `price`. `honest` is
    h: the share of slots whose holders do not collude. The share y of these holders replays. Each of V seats
    finds the fraud with chance z = h y `hit`. Cheating pays less than honest work iff
    (1 - (1 - z)^V)(S + p) > f c + G
    (`cheating.cheating_advantage`). With D = (f c + G) / (S + p), this gives y = (1 - (1 - D)^(1 / V)) / (h
    hit). In the 2x2 game (V = h = hit = 1), y = D.
    """
    needed = needed_chance(share=share, price=price, gain=gain, stake=stake, cost=cost)
    v = count("verifiers", verifiers, 1)
    reach = number("honest", honest, 0, 1) * number("hit", hit, 0, 1)
    if needed >= 1:
        return 1.0
    each = 1 - (1 - needed) ** (1 / v)
    return 1.0 if each >= reach else each / reach


def needed_chance(*, share: float, price: float, gain: float, stake: float, cost: float) -> float:
    """Return D = (f c + G) / (S + p), the least chance of conviction that deters. Here f is `share`, c is
    `cost`, G is `gain`, S is `stake` and p is `price`.

    If S + p = 0, D is infinite, or 0 if cheating gains nothing.
    """
    number("share", share, 0, 1)
    number("price", price, 0)
    number("stake", stake, 0)
    won = share * number("cost", cost, 0) + number("gain", gain, 0)
    if stake + price == 0:
        return NEVER if won > 0 else 0.0
    return won / (stake + price)


def inspection_equilibrium(
    duty: Duty,
    *,
    share: float,
    price: float,
    gain: float,
    stake: float,
    cost: float,
    hit: float = 1.0,
) -> Equilibrium:
    """Return the equilibrium of the 2x2 game of one solver and one verifier, which choose independently.

    A and B are those of `cheating_rate`, and D is `needed_chance`. x* is the result of `cheating_rate`, and
    y* that of `checking_rate` with V = h = 1. The first case that applies counts:

    - A >= 0 and D <= hit: replaying is at least as good even against honest work, and it deters. Everybody
      replays, and there is no fraud.
    - D = 0: fraud gains nothing, and nobody looks for it.
    - D > hit: fraud pays against any verifier and is certain; verifiers look for it if B > 0.
    - B <= 0: skipping is better even against certain fraud, so fraud is certain.
    - otherwise no pair of pure strategies is stable, and both mix, each at the rate that makes the *other*
      indifferent: (x*, y*).
    """
    pay = verifier_payoffs(duty, hit=hit)
    needed = needed_chance(share=share, price=price, gain=gain, stake=stake, cost=cost)
    if pay.verify_honest >= pay.skip_honest and needed <= hit:
        return Equilibrium(0.0, 1.0)
    if needed == 0:
        return Equilibrium(0.0, 0.0)
    if pay.verify_cheat <= pay.skip_cheat:
        return Equilibrium(1.0, 0.0)
    if needed > hit:
        return Equilibrium(1.0, 1.0)
    return Equilibrium(cheating_rate(duty, hit=hit), needed / hit)


def committee_equilibrium(
    duty: Duty,
    *,
    share: float,
    hit: float,
    verifiers: int,
    honest: float,
    price: float,
    gain: float,
    stake: float,
    cost: float,
) -> Equilibrium:
    """Return the symmetric equilibrium of V verifiers. They share the work of finding a fraud, and only one
    of them gets the reward.

    y is `checking_rate`, and h is `honest`. Each other seat finds the fraud with chance z = h y hit. The
    chance that no other seat finds it is n = (1 - z)^(V - 1). Against a cheater, a verifier whose replay
    finds the fraud gets g, and also R with chance s = (1 - (1 - z)^V) / (V z). This s is the chance of being
    first among 1 + Bin(V - 1, z) equally likely finders (priority depends on the order in blocks). A verifier
    that replays gets its fee F in any case. A verifier that skips loses the fee if another seat convicts a
    segment that the verifier attested; the chance of this is (1 - n) q / K. So the gain of replaying against
    a cheater is B = hit (R s + g) + (1 - n) (q / K) F - k. The rate of cheating is x = -A / (B - A), as in
    `cheating_rate`. The cases in which the solver or the verifiers do not mix are as in
    `inspection_equilibrium`. If fraud is certain and replaying at the rate y does not pay, verifiers replay
    at the lower rate at which B = 0. There may be further equilibria.
    """
    d = checked(duty)
    needed = needed_chance(share=share, price=price, gain=gain, stake=stake, cost=cost)
    lone = verifier_payoffs(d, hit=hit)
    dominant = lone.verify_honest - lone.skip_honest
    deterred = needed <= 1 - (1 - honest * hit) ** verifiers
    if dominant >= 0 and deterred:
        return Equilibrium(0.0, 1.0)
    if needed == 0:
        return Equilibrium(0.0, 0.0)
    y = checking_rate(
        share=share,
        hit=hit,
        verifiers=verifiers,
        honest=honest,
        price=price,
        gain=gain,
        stake=stake,
        cost=cost,
    )
    cheat = gain_against_cheater(d, hit=hit, verifiers=verifiers, found=honest * y * hit)
    if cheat > 0:
        return Equilibrium(dominant / (dominant - cheat) if deterred else 1.0, y)
    # Not even certain fraud makes verifiers replay often enough to deter it. So fraud is certain;
    # bisection finds the rate of replaying that pays.
    if gain_against_cheater(d, hit=hit, verifiers=verifiers, found=0.0) <= 0:
        return Equilibrium(1.0, 0.0)
    low, high = 0.0, y
    for _ in range(60):
        middle = (low + high) / 2
        pays = gain_against_cheater(d, hit=hit, verifiers=verifiers, found=honest * middle * hit) > 0
        low, high = (middle, high) if pays else (low, middle)
    return Equilibrium(1.0, low)


def gain_against_cheater(duty: Duty, *, hit: float, verifiers: int, found: float) -> float:
    """Return the gain of replaying over skipping if the solver cheats, in token units.

    Each other seat finds the fraud with chance `found`, which is z in the formula of `committee_equilibrium`.
    """
    d = checked(duty)
    z, v, h = number("found", found, 0, 1), count("verifiers", verifiers, 1), number("hit", hit, 0, 1)
    missed = (1 - z) ** (v - 1)
    first = (1 - (1 - z) ** v) / (v * z) if z > 0 else 1.0
    return h * (d.reward * first + d.game_cost) + (1 - missed) * d.held * d.audit_fee - d.cost


def least_attestation_fee(*, cost: float) -> float:
    """Return the least fee with which a verifier that replays does not lose by taking part: k, the cost.

    Fees fill the seats. They do not induce replays as long as a copied attestation earns the same fee; see
    `cheating_rate`.
    """
    return number("cost", cost, 0)


def reward_for_rate(*, cost: float, game_cost: float, cheating: float, hit: float = 1.0) -> float:
    """Return the reward R at which the rate of fraud is x = `cheating`, if attestations are plain: R = k /
    (hit x) - g, or 0 if this is negative.

    This is `cheating_rate` solved for R. The reward grows without bound as x falls to 0, while an actual
    reward is about twice the cost of a challenge, so rewards alone cannot end the dilemma.
    """
    x = number("cheating", cheating, 0, 1) * number("hit", hit, 0, 1)
    if x == 0:
        raise TheoryError("no reward ends fraud altogether: cheating and hit must be above 0")
    return max(0.0, number("cost", cost, 0) / x - number("game_cost", game_cost, 0))
