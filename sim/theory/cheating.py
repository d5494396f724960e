"""Whether cheating pays: the advantage of a false share over honest work, and the stake that removes this
advantage.

Only the solver makes a choice here. A share h of the verifiers is honest; `collusion` covers colluders.
Amounts are token units as floats (any unit works, because all formulas are homogeneous in it); only
`minimum_stake` is in integers, from `protocol.tasks.economics`.

An honest solver spends the cost c and is paid the price p at `settle`. A convicted solver loses the stake S
(`StakeVault.slash`) and is paid nothing, because the escrow returns to the submitter.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from protocol.tasks import economics
from protocol.tasks.economics import ONE, Audit
from sim.theory.bounds import TheoryError, Values, count, counts, number, within
from sim.theory.escape import caught_probability


def advantage_at(
    caught: ArrayLike,
    *,
    share: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    stake: ArrayLike,
    cost: ArrayLike,
    kept: ArrayLike = 1.0,
) -> Values:
    """Return how much more a cheater with the false share f earns than an honest solver, if it is convicted
    with chance D, which is `caught`.

    A cheater spends (1 - f) c. If it escapes, it earns p and G; if it is convicted, it loses S and keeps the
    share `kept` of G. So the advantage is

        (1 - D)(p + G) + D (kept G - S) - (1 - f) c - (p - c) = f c + (1 - (1 - kept) D) G - D (S + p).

    `kept` = 1 is audit.md section 9, where G counts in full (a false result may have been used before the
    conviction). `kept` = 0 is a gain that comes only with payment.

    With f = 0 the work is honest, so G counts as 0 here. D is not derived from f: the caller should pass
    `caught` = 0 for f = 0, and the advantage is then 0. `cheating_advantage` does so, because it passes the
    draw's chance.
    """
    d, f = within("caught", caught, 0, 1), within("share", share, 0, 1)
    worth = np.where(f > 0, within("gain", gain, 0), 0.0)
    lost = within("stake", stake, 0) + within("price", price, 0)
    return np.asarray(
        f * within("cost", cost, 0) + (1 - (1 - within("kept", kept, 0, 1)) * d) * worth - d * lost
    )


def stake_at(
    caught: ArrayLike,
    *,
    share: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    cost: ArrayLike,
    kept: ArrayLike = 1.0,
) -> Values:
    """Return the stake with which `advantage_at` is 0: (f c + G) / D - (1 - kept) G - p, for f above 0.

    The stake is negative if losing the price alone deters. It is infinite if cheating gains something and is
    never convicted (D = 0).
    """
    d, f, g = within("caught", caught, 0, 1), within("share", share, 0, 1), within("gain", gain, 0)
    if not bool(np.all(f > 0)):
        raise TheoryError("share must be above 0: honest work needs no stake")
    won, d = np.broadcast_arrays(f * within("cost", cost, 0) + g, d)
    per_conviction = np.divide(won, d, out=np.where(won > 0, np.inf, 0.0), where=d > 0)  # 0 / 0: nothing won.
    return np.asarray(per_conviction - (1 - within("kept", kept, 0, 1)) * g - within("price", price, 0))


def cheating_advantage(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    stake: ArrayLike,
    cost: ArrayLike,
    kept: ArrayLike = 1.0,
    accounts: ArrayLike | None = None,
) -> Values:
    """Return the expected profit of m false segments minus that of honest work, in the unit of the amounts.

    This is `advantage_at` with the draw's chance of conviction (`escape.caught_probability`) and f = m / K.
    Without false segments it is 0: such a result is honest, and gains nothing.
    """
    return advantage_at(
        caught_probability(segments, false, segments_per_verifier, verifiers, honest, accounts=accounts),
        share=np.asarray(false, dtype=np.float64) / np.asarray(segments, dtype=np.float64),
        price=price,
        gain=gain,
        stake=stake,
        cost=cost,
        kept=kept,
    )


def cheating_profit(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    stake: ArrayLike,
    cost: ArrayLike,
    kept: ArrayLike = 1.0,
    accounts: ArrayLike | None = None,
) -> Values:
    """Return the expected profit of a cheater: `cheating_advantage` plus what honest work earns, p - c."""
    advantage = cheating_advantage(
        segments=segments,
        false=false,
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        honest=honest,
        price=price,
        gain=gain,
        stake=stake,
        cost=cost,
        kept=kept,
        accounts=accounts,
    )
    return advantage + np.asarray(price, dtype=np.float64) - np.asarray(cost, dtype=np.float64)


def zero_profit_stake(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    cost: ArrayLike,
    kept: ArrayLike = 1.0,
    accounts: ArrayLike | None = None,
) -> Values:
    """Return the stake at which m >= 1 false segments earn exactly as much as honest work: `stake_at` with f
    = m / K.
    """
    within("false", false, 1)
    return stake_at(
        caught_probability(segments, false, segments_per_verifier, verifiers, honest, accounts=accounts),
        share=np.asarray(false, dtype=np.float64) / np.asarray(segments, dtype=np.float64),
        price=price,
        gain=gain,
        cost=cost,
        kept=kept,
    )


def worst_false(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float,
    price: float,
    gain: float,
) -> tuple[int, float]:
    """Return the number m of false segments that needs the largest stake, and this stake, which may be
    negative.

    The cost is assumed to be the whole price, as in dispute.md: c is not known on chain, and a solver that
    bids in order to earn has c <= p.
    """
    false = np.arange(1, count("segments", segments, 1) + 1)
    stakes = zero_profit_stake(
        segments=segments,
        false=false,
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        honest=honest,
        price=price,
        gain=gain,
        cost=price,
    )
    worst = int(np.argmax(stakes))
    return worst + 1, float(stakes[worst])


def minimum_stake(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float | Fraction,
    price: int,
    gain: int,
    reward: int = 0,
    restitution: int = 0,
    margin: int = 0,
) -> int:
    """Return S_min in integer token units: `protocol.tasks.economics.minimum_stake` with h rounded down to
    10^-18.

    `reward` and `restitution` are added to the stake, because a cheater that is its own challenger and
    submitter gets them back. `margin` is added too. Raises `TheoryError` for an impossible share, and
    `protocol.tasks.economics.StakeError` if no stake is enough.
    """
    number("honest", float(honest), 0, 1)
    chance = int(Fraction(honest) * ONE)
    audit = Audit(segments, segments_per_verifier, verifiers, chance)
    recoverable = reward + restitution
    return economics.minimum_stake(audit, price, gain, recoverable=recoverable, margin=margin)


def least_audits(
    *,
    segments: ArrayLike,
    honest: ArrayLike,
    price: ArrayLike,
    gain: ArrayLike,
    stake: ArrayLike,
    reward: ArrayLike = 0.0,
) -> Values:
    """Return n = V q, the number of audits that deters one false segment: K (G + p / K) / (h (S - R + p)).

    One false segment is in n h / K honest audits on average, which approximates the chance of conviction
    while that chance is small. A cheater that challenges itself recovers R. More false segments do not need
    more audits: m of them are found about m times as often, but are worth only G + m p / K, less than m times
    as much.
    """
    k = counts("segments", segments, 1)
    h = within("honest", honest, np.finfo(np.float64).tiny, 1)
    p = within("price", price, 0)
    lost = within("stake less reward", np.subtract(stake, reward), 0) + p
    within("stake + price", lost, np.finfo(np.float64).tiny)
    return np.asarray(k * (within("gain", gain, 0) + p / k) / (h * lost))


def break_even_false(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float,
    price: float,
    gain: float,
    stake: float,
    cost: float,
    kept: float = 1.0,
) -> tuple[tuple[int, int], ...]:
    """Return the ranges (first m, last m) of numbers of false segments with which cheating pays, in ascending
    order; () if there are none.

    The break-even shares f are the ends of these ranges divided by K. There may be two ranges: few false
    segments, which are rarely drawn (any number of them wins G), and many, if the cost saved exceeds what a
    conviction takes.
    """
    if segments < 1:
        raise TheoryError(f"segments must be at least 1, got {segments}")
    advantage = cheating_advantage(
        segments=segments,
        false=np.arange(1, segments + 1),
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        honest=honest,
        price=price,
        gain=gain,
        stake=stake,
        cost=cost,
        kept=kept,
    )
    pays = np.concatenate([[False], advantage > 0, [False]])
    edges = np.flatnonzero(pays[1:] != pays[:-1])
    return tuple((int(first) + 1, int(end)) for first, end in zip(edges[::2], edges[1::2]))
