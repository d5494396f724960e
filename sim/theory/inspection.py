"""The verifier's dilemma: replaying costs, nobody sees whether it was done, and fraud is rare because it is done.

An inspection game. The solver cheats or is honest; a drawn verifier replays its duty or skips it and attests
what the solver says. Amounts are token units as floats; rates are chances. The subject is one verifier's own
choice: the honest share h of the other files is what these equilibria either give or do not.

The contracts as they stand: an attestation is plain, its root is compared with nothing, a silent verifier
loses no stake and a false attestation none. So `lock`, `silent_lock`, `jackpot` and `forced` are 0 and
`copied` is 1 there; anything else follows dispute.md section 3 (sealed attestations, the solver's interior
roots, forced errors) beyond them.
"""

from typing import NamedTuple

from sim.theory.bounds import TheoryError, count, number

NEVER = float("inf")


class Duty(NamedTuple):
    """What one duty is worth to its verifier.

    `audit_fee`: paid at `settle` for an attestation. `cost`: of the replay. `reward`: what a conviction
    brings it, less the gas of the game (the bond comes back); scale it by the chance of having priority, for
    a cheater that commits to its own segments first takes it (`DisputeGame.commit` costs it nothing but
    capital). `lock`: lost for sealing a flagged root (that a seal equal to a root which somebody else has
    judged false is slashed too is not counted). `silent_lock`: lost for not sealing. `jackpot`: won for
    differing from a flagged root, on top of the fee. `forced`: e, the rate of flagged roots. `copied`: the
    chance that a skipper can learn the root that will be published.
    """

    audit_fee: float
    cost: float
    reward: float
    lock: float = 0.0
    silent_lock: float = 0.0
    jackpot: float = 0.0
    forced: float = 0.0
    copied: float = 1.0


class Payoffs(NamedTuple):
    """A verifier's expected amounts in the four cells of the game, named (verifier, solver)."""

    verify_honest: float
    verify_cheat: float
    skip_honest: float
    skip_cheat: float


class Equilibrium(NamedTuple):
    """The rates of an equilibrium: `cheating` that a submission is false, `checking` that a duty is replayed."""

    cheating: float
    checking: float


def checked(duty: Duty) -> Duty:
    """Return the duty; raise `TheoryError` for negative amounts, or rates outside 0 to 1."""
    for name, value in duty._asdict().items():
        number(name, value, 0, 1 if name in ("forced", "copied") else NEVER)
    return duty


def verifier_payoffs(duty: Duty, *, hit: float = 1.0) -> Payoffs:
    """Return a lone verifier's payoffs, in token units.

    `hit` is 1 - a(f): the chance that the duty's segments hold a false one. With F fee, k cost, R reward, L
    lock, Q silent lock, J jackpot, e forced, y copied:

    - replaying: -k always. Where it meets a false segment: R, flagged or not; a conviction pays no fee, no jackpot and
      no penalty, for the escrow goes back to the submitter. Where it does not: F + J if flagged (e), F if not.
    - skipping without a root (1 - y): it cannot seal, and loses Q. With one (y), flagged: L lost. Not
      flagged: F, whether the segment is false or not; alone, nobody else finds it.
    """
    d = checked(duty)
    h = number("hit", hit, 0, 1)
    attesting = d.audit_fee + d.forced * d.jackpot
    copier = d.copied * ((1 - d.forced) * d.audit_fee - d.forced * d.lock) - (1 - d.copied) * d.silent_lock
    return Payoffs(
        verify_honest=attesting - d.cost,
        verify_cheat=h * d.reward + (1 - h) * attesting - d.cost,
        skip_honest=copier,
        skip_cheat=copier,
    )


def cheating_rate(duty: Duty, *, hit: float = 1.0) -> float:
    """Return x, the rate of cheating at which a lone verifier is indifferent, cut off to 0 to 1.

    Replaying less skipping is A = verify_honest - skip_honest at x = 0 and moves linearly to B = verify_cheat
    - skip_cheat at x = 1, so x = A / (A - B) = -A / (B - A). 0: replaying is the better answer without any
    fraud (A >= 0). 1: it never is (B <= 0). With the contracts' plain attestations x = k / (hit (R - F)): the
    stake is not in it, for no stake of the *solver* makes *verifiers* work; and a larger fee makes it worse.
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
    """Return the rate of replaying that leaves a solver indifferent to cheating with f = `share`; 1: none is enough.

    Each of V seats finds the fraud with chance z = `honest` y `hit`, where h is now the share of slots that
    replay *at all* rather than collude, and y the rate wanted. Cheating pays less than honest work iff (1 -
    (1 - z)^V)(S + p) > f c + G (`cheating.cheating_advantage`, one seed), so with D = (f c + G) / (S + p): y
    = (1 - (1 - D)^(1 / V)) / (h hit). In the 2x2 game (V = h = hit = 1) that is y = D. `cost` is c, the
    solver's.
    """
    needed = needed_chance(share=share, price=price, gain=gain, stake=stake, cost=cost)
    v = count("verifiers", verifiers, 1)
    reach = number("honest", honest, 0, 1) * number("hit", hit, 0, 1)
    if needed >= 1:
        return 1.0
    each = 1 - (1 - needed) ** (1 / v)
    return 1.0 if each >= reach else each / reach


def needed_chance(*, share: float, price: float, gain: float, stake: float, cost: float) -> float:
    """Return D = (f c + G) / (S + p), the least chance of conviction that deters; infinite with nothing to lose."""
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
    """Return the equilibrium of the 2x2 game of one solver and one verifier, both without the other's answer.

    With A, B as in `cheating_rate` and y* as in `checking_rate` (V = h = 1):

    - A >= 0 and D <= hit: replaying is the better answer to honest work, and deters. It is always done, and
      there is no fraud.
    - D = 0: nobody gains by fraud, and nobody looks for it.
    - D > hit: fraud pays against any verifier and is certain; it is looked for if B > 0. (A >= 0 does not
      imply that: a conviction costs its finder the fee.)
    - B <= 0: skipping is better even against certain fraud, which therefore is certain.
    - otherwise no pair of certain choices is stable (each answer undoes the other), and both mix: each with
      the rate that leaves the *other* indifferent, (x*, y*).
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
    """Return the symmetric equilibrium of V verifiers, who share the work of finding a fraud and one reward.

    y is `checking_rate`. Each other seat finds the fraud with chance z = h y hit, so none does with n = (1 -
    z)^(V - 1). Against a cheater, replaying pays its finder R s with s = (1 - (1 - z)^V) / (V z), the chance
    to be the first among 1 + Bin(V - 1, z) finders, equally likely (which of them has priority is a matter of
    blocks); whoever finds nothing earns its fee with chance n. So, flags apart, replaying less skipping is
    hit (R s - F n) - k against a cheater, against `cheating_rate`'s hit (R - F) - k: the reward is divided,
    and so is the fee that is lost anyway. x = -A / (B - A) as there. Certain choices are as in
    `inspection_equilibrium`; where fraud is certain and y is more than pays, the rate is lower: one at which
    B = 0. There may be further equilibria.
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
    # Even certain fraud makes nobody look as often as deters: it is certain, and looked for as often as pays.
    if gain_against_cheater(d, hit=hit, verifiers=verifiers, found=0.0) <= 0:
        return Equilibrium(1.0, 0.0)
    low, high = 0.0, y
    for _ in range(60):
        middle = (low + high) / 2
        pays = gain_against_cheater(d, hit=hit, verifiers=verifiers, found=honest * middle * hit) > 0
        low, high = (middle, high) if pays else (low, middle)
    return Equilibrium(1.0, low)


def gain_against_cheater(duty: Duty, *, hit: float, verifiers: int, found: float) -> float:
    """Return what replaying earns over skipping when the solver cheats; other seats find it with chance `found`.

    The formula of `committee_equilibrium`, whose z is `found`, with flags and copies as in `verifier_payoffs`:
    hit R s + (1 - hit) (F + e J) n - k against y ((1 - e) F - e L) n - (1 - y) Q. Whoever convicts, nobody is
    paid or fined for attestations, flagged or not (n); a silent lock is lost before anybody challenges. In token
    units.
    """
    d = checked(duty)
    z, v, h = number("found", found, 0, 1), count("verifiers", verifiers, 1), number("hit", hit, 0, 1)
    missed = (1 - z) ** (v - 1)
    first = (1 - (1 - z) ** v) / (v * z) if z > 0 else 1.0
    attesting = (1 - h) * (d.audit_fee + d.forced * d.jackpot)
    copying = d.copied * ((1 - d.forced) * d.audit_fee - d.forced * d.lock)
    return h * d.reward * first + missed * (attesting - copying) + (1 - d.copied) * d.silent_lock - d.cost


def least_forced_rate(
    *,
    cost: float,
    jackpot: float,
    lock: float,
    audit_fee: float = 0.0,
    copied: float = 1.0,
    silent_lock: float = 0.0,
) -> float:
    """Return e_min: above it replaying beats copying the solver's root although no solver ever cheats.

    dispute.md section 3: at rate e the published root is wrong by a flag. Replaying earns F - k + e J;
    copying (1 - e) F - e L with chance y, else -Q. The difference e J + F - k - y ((1 - e) F - e L) + (1 - y)
    Q is positive iff

        e > (k - (1 - y)(F + Q)) / (J + y (F + L)),

    for y = 1 (whoever skips has the root): e (J + L + F) > k. Infinite when above 1: no rate is enough. It
    holds against lazy verifiers, not against one that the solver tells its flags: a solver knows them from
    the start.
    """
    d = checked(Duty(audit_fee, cost, 0.0, lock, silent_lock, jackpot, 0.0, copied))
    lacking = d.cost - (1 - d.copied) * (d.audit_fee + d.silent_lock)
    at_stake = d.jackpot + d.copied * (d.audit_fee + d.lock)
    if lacking <= 0:
        return 0.0
    return lacking / at_stake if lacking <= at_stake else NEVER


def forced_cost(*, forced: float, jackpot: float, duties: int) -> float:
    """Return what forced errors cost a task whose duties are all replayed: e J for each, in token units.

    At e_min with everything copied (`least_forced_rate`) that is k J / (J + L + F) a duty: the larger the
    lock, the less of the replay is paid through jackpots. With J alone it is the whole cost k.
    """
    return number("forced", forced, 0, 1) * number("jackpot", jackpot, 0) * count("duties", duties, 0)


def least_attestation_fee(*, cost: float, forced: float = 0.0, jackpot: float = 0.0) -> float:
    """Return the fee below which a verifier that replays every duty loses by taking part at all: k - e J, at least 0.

    Paid attestations fill the seats; they do not make anyone replay while a copy is paid the same (`cheating_rate`).
    """
    return max(0.0, number("cost", cost, 0) - number("forced", forced, 0, 1) * number("jackpot", jackpot, 0))


def most_copied(duty: Duty) -> float:
    """Return the largest chance of obtaining the root, below which replaying is the better answer to honest solvers.

    Interior roots (dispute.md section 3): the seal holds the step-tree root of the verifier's own replay, and
    the solver publishes its own only after the seals. Then a skipper seals with chance y, and without flags
    replaying is better iff F - k > y F - (1 - y) Q, so y < 1 - k / (F + Q). With flags, F + e J - k > y ((1 -
    e) F - e L) - (1 - y) Q, so y < (F + e J - k + Q) / ((1 - e) F - e L + Q). Where copying is impossible (y
    = 0) it is enough that F + Q + e J > k. At most 1, at least 0.
    """
    d = checked(duty)
    surplus = d.audit_fee + d.forced * d.jackpot - d.cost + d.silent_lock
    per_copy = (1 - d.forced) * d.audit_fee - d.forced * d.lock + d.silent_lock
    if surplus <= 0:
        return 0.0
    return 1.0 if per_copy <= surplus else surplus / per_copy


def reward_for_rate(*, cost: float, audit_fee: float, cheating: float, hit: float = 1.0) -> float:
    """Return the reward with which plain attestations still allow fraud at a rate of `cheating`: F + k / (hit x).

    `cheating_rate` solved for R. As x falls to 0 it grows without bound, and a reward is capped at twice the
    cost of a challenge, so rewards alone never end the dilemma.
    """
    x = number("cheating", cheating, 0, 1) * number("hit", hit, 0, 1)
    if x == 0:
        raise TheoryError("no reward ends fraud altogether: cheating and hit must be above 0")
    return number("audit_fee", audit_fee, 0) + number("cost", cost, 0) / x
