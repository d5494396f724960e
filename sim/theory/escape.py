"""Whether a false result is found: the chances of dispute.md section 8, as floats over arrays.

`protocol.tasks.economics` is the single source of stakes and its integers are what contracts agree on; this is its
float view for plots, sweeps and the comparison with runs, and goes where the integers do not: many values at
once, caught chances far below 10^-18, and the misses as the contracts count them.

Vocabulary of all of `sim.theory`: `segments` K, `false` m, `segments_per_verifier` q, `verifiers` V, `honest`
h (the share of slots whose holders replay and challenge), `rerolls` k. Arguments broadcast; results are
float64 arrays.
"""

import numpy as np
from numpy.typing import ArrayLike

from protocol.tasks.economics import REROLLS
from sim.theory.bounds import Values, count, counts, within

MAX_DRAWS = 64
"""V q at most, in terms and after misses: `TermsCheck.MAX_DRAWS`."""


def missed_probability(segments: ArrayLike, false: ArrayLike, segments_per_verifier: ArrayLike) -> Values:
    """Return a = C(K - m, q) / C(K, q), the chance that q distinct segments hold none of the m false ones.

    Of C(K, q) equally likely sets, C(K - m, q) lie among the K - m true segments. The quotient is the product
    over i < q of (K - m - i) / (K - i): the i-th segment drawn is true too. A q of K or more draws all of
    them, so a = 0 for m >= 1.

    Source: dispute.md section 8; the draw is `DrawWords.distinct`. Raises `TheoryError` for m > K or counts below 0.
    """
    k = counts("segments", segments, 1)
    m = counts("false", false, 0)
    q = counts("segments_per_verifier", segments_per_verifier, 0)
    within("false of segments", m / k, 0, 1)
    k, m, q = np.broadcast_arrays(k, m, q)
    missed = np.ones(k.shape)
    for i in range(int(np.minimum(q, k).max())):
        drawn = (i < q) & (i < k)
        missed = np.where(drawn, missed * np.maximum(k - m - i, 0) / np.where(drawn, k - i, 1), missed)
    return np.asarray(missed)


def caught_probability(
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    *,
    rerolls: ArrayLike = REROLLS,
) -> Values:
    """Return 1 - P' = (1 - (1 - h + h a)^V)^(2^k), the chance that a cheater is convicted.

    Seats are uniform slots drawn with replacement, so each of the V seats is honest with chance h,
    independently of the others, and draws its own q segments: one seat finds nothing with chance 1 - h (1 -
    a), all of them with its V-th power P. That an account drawn twice holds a duty once (`AuditBoard._add`)
    changes no chance: its two draws are still two sets. A solver that can wait for 2^k seeds is convicted
    only if each of them convicts it.

    Computed as a complement throughout, so a chance of 10^-30 keeps its digits. `rerolls` 0 is an honest
    chain of draws. Assumes that m does not count segment K, which every drawn verifier replays
    (`last_caught_probability`), or that m = K.
    """
    h = within("honest", honest, 0, 1)
    v = counts("verifiers", verifiers, 1)
    k = counts("rerolls", rerolls, 0, 64)
    hit = h * (1 - missed_probability(segments, false, segments_per_verifier))
    with np.errstate(divide="ignore"):  # A certain hit: log 0, and the chance is 1.
        once = -np.expm1(v * np.log1p(-hit))
    return np.asarray(once ** (2**k))


def escape_probability(
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    *,
    rerolls: ArrayLike = REROLLS,
) -> Values:
    """Return P', the chance that nobody honest is drawn on a false segment: 1 - `caught_probability`.

    The float view of `protocol.tasks.economics.escape_chance_rerolled`, which rounds up in units of 10^-18.
    """
    return 1 - caught_probability(segments, false, segments_per_verifier, verifiers, honest, rerolls=rerolls)


def last_caught_probability(verifiers: ArrayLike, honest: ArrayLike) -> Values:
    """Return 1 - (1 - h)^V: the chance of conviction, in one draw, when segment K is among the false ones.

    Every drawn verifier replays segment K besides its q (dispute.md section 3), so one honest seat is enough.
    It is the most that any m can reach, which is why a cheater leaves segment K true.
    """
    h = within("honest", honest, 0, 1)
    v = counts("verifiers", verifiers, 1)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(v * np.log1p(-h)))


def raised_segments(segments_per_verifier: int, verifiers: int, misses: int) -> int:
    """Return q after `misses` missed draws, as `AuditBoard._segmentsPerVerifier` raises it.

    Each miss adds half of q, rounded up, while V q stays within `MAX_DRAWS`; so waiting buys a stricter audit.
    """
    v = count("verifiers", verifiers, 1, MAX_DRAWS)
    q = count("segments_per_verifier", segments_per_verifier, 1, MAX_DRAWS // v)
    for _ in range(count("misses", misses, 0)):
        q = min(q + (q + 1) // 2, MAX_DRAWS // v)
    return q


def caught_probability_missed(
    segments: int, false: ArrayLike, segments_per_verifier: int, verifiers: int, honest: float, *, misses: int
) -> Values:
    """Return the chance of conviction of a solver that can let `misses` draws pass, one look at a seed for each.

    It takes the first seed that lets it escape, and the last one there is: a task that is never drawn burns its stake
    (`TaskMarket.voidTask`), so letting the last one pass too is no better than a conviction. Draw i has q_i =
    `raised_segments`, so it is convicted with chance (1 - P(q_0)) (1 - P(q_1)) ... (1 - P(q_misses)). This is
    what the contracts give a solver that keeps everyone else from drawing; the 2^k tries of
    `caught_probability` are the bound that stakes are set by. Anyone may draw and is paid for it, so a solver
    that cannot censor has one try.
    """
    caught = np.ones(np.shape(false))
    for i in range(count("misses", misses, 0) + 1):
        q = raised_segments(segments_per_verifier, verifiers, i)
        caught = caught * caught_probability(segments, false, q, verifiers, honest, rerolls=0)
    return np.asarray(caught)
