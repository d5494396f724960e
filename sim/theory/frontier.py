"""When the minimum stake explodes, how many audits prevent this, and how milestones help instead.

A stake's multiple is S_min / p: the minimum stake divided by the task's price. Everything follows from the
zero-profit stake (`cheating`). The cost is taken to equal the price, and the gain G is given as a ratio g = G
/ p, so token units appear only in `milestones` and `fewest_milestones`.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from protocol.tasks.economics import StakeError
from protocol.tasks.task import MAX_SEATS
from sim.theory.bounds import TheoryError, Values, count, counts, number, within
from sim.theory.cheating import minimum_stake, worst_false


class Audits(NamedTuple):
    """One point of the frontier. `multiple` is S_min / p at that point, and `audits` is V times q."""

    verifiers: int
    segments_per_verifier: int
    audits: int
    multiple: float


class Milestones(NamedTuple):
    """A task of K segments that is split into `tasks` parts. The parts are tasks that follow one after the
    other, and each has at most `segments` segments.

    `stake` is locked for each part in turn, `price` is the price of each part, and `fees` is the total of all
    audit fees.
    """

    tasks: int
    segments: int
    price: int
    stake: int
    fees: int


def stake_multiple(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float,
    gain_ratio: float,
) -> float:
    """Return max(0, S_min / p) for a gain G of `gain_ratio` p. It is infinite if some number m of false
    segments is never caught.
    """
    _, stake = worst_false(
        segments=segments,
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        honest=honest,
        price=1.0,
        gain=gain_ratio,
    )
    return max(0.0, stake)


def stake_multiple_sparse(
    *,
    segments: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    gain_ratio: ArrayLike,
) -> Values:
    """Return the limit of S_min / p for q V << K: (1 / K + g) K / (h q V) - 1.

    One false segment is the worst case. The q segments of one seat miss it with chance a = 1 - q / K exactly.
    So all V seats find nothing with chance P = (1 - h q / K)^V = 1 - h q V / K + O((q V / K)^2), and the
    chance of conviction tends to h q V / K. At fixed q V the stake grows in proportion to K; at fixed q V / K
    it stays constant.
    """
    k = counts("segments", segments, 1)
    n = counts("segments_per_verifier", segments_per_verifier, 1) * counts("verifiers", verifiers, 1)
    h = within("honest", honest, np.finfo(np.float64).tiny, 1)
    return np.asarray((1 / k + within("gain_ratio", gain_ratio, 0)) * k / (h * n) - 1)


def audits_per_segment(*, honest: float, gain_ratio: float, multiple: float, verifiers: int = 0) -> float:
    """Return the limit for large K of the ratio q V / K that keeps S_min at `multiple` p.

    One false segment must be caught with chance D = g / (1 + multiple). If V is given, D must equal 1 - (1 -
    h q / K)^V. Solved for the ratio, this gives V (1 - (1 - D)^(1 / V)) / h. With more verifiers the ratio
    rises to -ln(1 - D) / h, which is returned for V = 0. So q V must grow in proportion to K, whatever the
    multiple: no frontier is flat in K.

    Raises `TheoryError` if no audit is enough. This is so if multiple + 1 <= g, or if there are too few seats
    even with q = K, which means D > 1 - (1 - h)^V.
    """
    h = number("honest", honest, np.finfo(np.float64).tiny, 1)
    most = number("multiple", multiple, 0)
    v = count("verifiers", verifiers, 0)
    needed = number("gain_ratio", gain_ratio, 0) / (1 + most)
    if needed >= 1 or (v and needed > 1 - (1 - h) ** v):
        raise TheoryError(
            f"no audit keeps the stake at {most:g} prices for a gain of {gain_ratio:g}: raise the multiple or V"
        )
    if v:
        return float(v * -np.expm1(np.log1p(-needed) / v) / h)
    return float(-np.log1p(-needed) / h)


def least_segments_per_verifier(
    *,
    segments: int,
    verifiers: int,
    honest: float,
    gain_ratio: float,
    multiple: float,
) -> int | None:
    """Return the least q that keeps S_min at most `multiple` p with V verifiers, or None if even q = K does
    not.

    Every chance of being caught grows with q, so S_min falls with q and bisection finds the least.
    """
    most = number("multiple", multiple, 0)

    def keeps(q: int) -> bool:
        return (
            stake_multiple(
                segments=segments,
                segments_per_verifier=q,
                verifiers=verifiers,
                honest=honest,
                gain_ratio=gain_ratio,
            )
            <= most
        )

    low, high = 0, count("segments", segments, 1)
    if not keeps(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def frontier(
    *,
    segments: int,
    honest: float,
    gain_ratio: float,
    multiple: float,
    most_verifiers: int = MAX_SEATS,
) -> tuple[Audits, ...]:
    """Return, for each V from 1 to `most_verifiers`, the least q with S_min <= `multiple` p, if there is one.

    q is not limited to 64, the bound of terms: points beyond 64 show the cost of this bound.
    """
    points = []
    for v in range(1, count("most_verifiers", most_verifiers, 1) + 1):
        q = least_segments_per_verifier(
            segments=segments,
            verifiers=v,
            honest=honest,
            gain_ratio=gain_ratio,
            multiple=multiple,
        )
        if q is not None:
            reached = stake_multiple(
                segments=segments,
                segments_per_verifier=q,
                verifiers=v,
                honest=honest,
                gain_ratio=gain_ratio,
            )
            points.append(Audits(v, q, v * q, reached))
    return tuple(points)


def largest_segments(
    *,
    segments_per_verifier: int,
    verifiers: int,
    honest: float,
    gain_ratio: float,
    multiple: float,
    most: int = 1 << 14,
) -> int:
    """Return the largest K up to `most` for which S_min is at most `multiple` p; 0 if S_min is larger even
    for K = 1.

    For a given audit, the stake explodes beyond this K. K is doubled from 1, then bisected. This finds the
    largest K because S_min never falls as K grows. While q < K, more segments mean that a false segment is
    drawn more rarely. While q >= K, all segments are drawn, and K enters S_min only through the false share m
    / K, which is 1 in the worst case.
    """

    def keeps(k: int) -> bool:
        return (
            stake_multiple(
                segments=k,
                segments_per_verifier=segments_per_verifier,
                verifiers=verifiers,
                honest=honest,
                gain_ratio=gain_ratio,
            )
            <= multiple
        )

    low, high = 0, 1
    while high <= most and keeps(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def milestones(
    *,
    segments: int,
    tasks: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float | Fraction,
    price: int,
    gain: int,
    audit_fee: int,
) -> Milestones:
    """Return a task of K segments split into n tasks. Each task starts from the result of the one before it,
    once that one is settled.

    Each part has K / n segments (rounded up), the price p / n (rounded up, so the stake errs upwards), the
    same V and q, and **the whole G**: a false segment anywhere makes the last result false. q counts against
    K / n instead of K, so the sparse stake falls from K / (h q V) (1 / K + g) p to K / (n h q V) (1 / K + g)
    p. The cost is n times the audits, n draws, and n challenge periods one after the other; only one stake is
    locked at a time.

    Raises `TheoryError` for more tasks than segments, and `StakeError` if false segments of a part are never
    caught.
    """
    parts = count("tasks", tasks, 1, count("segments", segments, 1))
    fee = count("audit_fee", audit_fee, 0)
    each, paid = -(-segments // parts), -(-price // parts)
    stake = minimum_stake(
        segments=each,
        segments_per_verifier=segments_per_verifier,
        verifiers=verifiers,
        honest=honest,
        price=paid,
        gain=gain,
    )
    fees = parts * fee * verifiers * min(segments_per_verifier, each)
    return Milestones(parts, each, paid, stake, fees)


def fewest_milestones(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    honest: float | Fraction,
    price: int,
    gain: int,
    audit_fee: int,
    multiple: float,
) -> Milestones | None:
    """Return the split with the fewest tasks among all splits with a stake of at most `multiple` times the
    price of the whole task. Return None if no split meets this limit.
    """
    limit = number("multiple", multiple, 0) * price
    for tasks in range(1, count("segments", segments, 1) + 1):
        try:
            plan = milestones(
                segments=segments,
                tasks=tasks,
                segments_per_verifier=segments_per_verifier,
                verifiers=verifiers,
                honest=honest,
                price=price,
                gain=gain,
                audit_fee=audit_fee,
            )
        except StakeError:
            continue  # False segments are still never caught: use more parts.
        if plan.stake <= limit:
            return plan
    return None
