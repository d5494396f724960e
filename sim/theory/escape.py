"""Whether a false result is found: the chances of audit.md section 9, as floats over arrays.

`protocol.tasks.economics` is the single source of stakes, in the integers that the contracts use. This module
is its float version for plots, sweeps and comparisons with runs. Unlike the integers, it also covers arrays
of values, chances of conviction far below 10^-18, and networks of few accounts.

Vocabulary of all of `sim.theory`: `segments` K, `false` m, `segments_per_verifier` q, `verifiers` V, `honest`
h (the share of the registered stake whose holders replay and challenge), `accounts` (registered accounts, of
equal stake). Arguments broadcast; results are float64 arrays. A draw cannot be skipped, so a solver has only
one try.
"""

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import Values, counts, within


def missed_probability(segments: ArrayLike, false: ArrayLike, segments_per_verifier: ArrayLike) -> Values:
    """Return a = C(K - m, q) / C(K, q), the chance that q distinct segments include none of the m false ones.

    Of C(K, q) equally likely sets, C(K - m, q) lie among the K - m true segments. The quotient is the product
    over i < q of (K - m - i) / (K - i), the chance that the next segment drawn is true as well. With q >= K
    all segments are drawn, so a = 0 for m >= 1.

    Source: audit.md section 9; the draw is `DrawWords.distinct`. Raises `TheoryError` for m > K or counts
    below 0.
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
    accounts: ArrayLike | None = None,
) -> Values:
    """Return the chance that at least one honest seat has a false segment.

    Each of V seats draws its own q segments, and a is the chance that none of them is false. The result is
    the sum over j of 1 - a^j times the chance that j seats are honest. Without `accounts`, infinitely many
    are assumed: each seat is honest with chance h independently of the others, so the result is 1 - (1 - h +
    h a)^V. With `accounts`, which is N here, seats are distinct accounts and the number of honest ones is
    hypergeometric: if j of the first i seats are honest, the next seat is honest with chance (h N - j) / (N -
    i), limited to the range from 0 to 1. The result is slightly larger than with infinitely many accounts.
    `seats_law` covers accounts of unequal stake.

    The result is not computed by subtracting the opposite chance from 1. So it keeps its digits even if it is
    tiny, for example if h is 10^-30.
    """
    h = within("honest", honest, 0, 1)
    v = counts("verifiers", verifiers, 1)
    missed = missed_probability(segments, false, segments_per_verifier)
    if accounts is None:
        with np.errstate(divide="ignore"):  # If a hit is certain, this is log 0, and the chance is 1.
            return np.asarray(-np.expm1(v * np.log1p(-h * (1 - missed))))
    n = counts("accounts", accounts, 1)
    within("verifiers of accounts", v / n, 0, 1)
    h, v, missed, n = np.broadcast_arrays(h, v, missed, n)
    most = int(v.max())
    law = [np.ones(h.shape), *(np.zeros(h.shape) for _ in range(most))]
    for i in range(most):
        for j in range(i, -1, -1):
            chance = np.clip((h * n - j) / np.maximum(n - i, 1), 0, 1) * (i < v)
            law[j + 1] = law[j + 1] + law[j] * chance
            law[j] = law[j] * (1 - chance)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [np.where(missed > 0, -np.expm1(j * np.log(missed)), 1.0) for j in range(1, most + 1)]
    return np.asarray(sum(share * chance for share, chance in zip(law[1:], found)))


def escape_probability(
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    *,
    accounts: ArrayLike | None = None,
) -> Values:
    """Return P, the chance that no honest seat has a false segment: 1 - `caught_probability`.

    Without `accounts`, this is `protocol.tasks.economics.escape_chance` as a float; the integer version
    rounds up to units of 10^-18.
    """
    return 1 - caught_probability(
        segments, false, segments_per_verifier, verifiers, honest, accounts=accounts
    )
