"""Whether a task that is right is paid: the chance that it ends void because verifiers do not answer.

The contracts as they stand (`AuditBoard.draw`, `satisfied`): V seats, each with q distinct segments of K and
segment K besides; an account drawn twice holds a duty once. Each drawn segment needs A attestations, or all
of those drawn for it when they are fewer; segment K needs A in any case, and while fewer than A accounts are
drawn, further ones are drawn for segment K alone, 64 times at most. One draw; nothing is drawn again for silence.
dispute.md section 3 redraws up to R times before it voids: `void_probability_redrawn`.

Assumes that an account answers all of its duties or none, independently of the others, and that all hold
equally many slots.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import comb, factorial, prod

from sim.theory.bounds import TheoryError, count, number

RARE = 1e-13
"""Partitions rarer than this are not followed and count as void: with at most 8,349 of them (V = 32), below 10^-9."""
TRIES = 64
"""Further draws for segment K at most: `AuditBoard.MAX_TRIES`."""
MOST_SEATS = 32
"""V at most where accounts are counted: the partitions of 64 seats would be 1.7 million."""

Uncovered = tuple[int, ...]
"""How many of the silent accounts' segments have 0, 1, ..., A - 1 answers so far."""


def void_probability(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    matches: int,
    up: float,
    accounts: int | None = None,
) -> float:
    """Return the chance that a drawn task ends void when each account answers with chance `up`.

    `accounts` is how many are in the draw, None for so many that none is drawn twice. Exact, by three sums:

    - over the seats' partition into accounts (`_partitions`): one drawn t times holds the union of t sets of
      q, whose size has a law of hypergeometric steps (`_union`), and which is a uniform set of its size;
    - over which accounts are silent: binomial for each multiplicity;
    - given these, over how the sets overlap: first the union W of the silent sets without segment K, then how
      often the answering sets cover each element of W (`_covered`).

    The task is paid iff at least A accounts answer and each of W is covered A times: a segment that a silent
    account holds lacks one of all, so only A answers satisfy it; other segments have all.

    With fewer than A accounts drawn the board draws up to A, for segment K, and all of them must answer: up^A,
    if `TRIES` draws find so many (`_found`). Raises `TheoryError` for counts out of the bounds of terms, or V above
    `MOST_SEATS` with `accounts` given; 1 where fewer than A accounts exist.
    """
    k = count("segments", segments, 1)
    q = min(count("segments_per_verifier", segments_per_verifier, 1, 64), k)
    v = count("verifiers", verifiers, 1, 64)
    a = count("matches", matches, 1, v)
    u = number("up", up, 0, 1)
    if accounts is not None and v > MOST_SEATS:
        raise TheoryError(
            f"with accounts given, verifiers must be at most {MOST_SEATS}, got {v}: leave it out"
        )
    if accounts is not None and count("accounts", accounts, 1) < a:
        return 1.0
    paid = 0.0
    for parts, chance in _partitions(v, accounts):
        if chance < RARE:
            continue
        if accounts is not None and len(parts) < a:
            paid += chance * _found(accounts, len(parts), a) * u**a
            continue
        for silent, given in _silences(parts, u):
            answering = Counter(parts)
            answering.subtract(silent)
            if len(parts) - sum(silent.values()) >= a:
                sizes = (tuple(sorted(silent.elements())), tuple(sorted(answering.elements())))
                paid += chance * given * _satisfied(k, q, a, *sizes)
    return min(1.0, max(0.0, 1 - paid))


def void_probability_single(*, verifiers: int, up: float) -> float:
    """Return the limit for q V << K, where every segment is drawn once: 1 - up^V, whatever A is.

    A segment that one account was drawn for needs that one. So each seat can void a task alone, and more
    seats make voids likelier: the contracts' rule buys no redundancy until seats overlap.
    """
    return float(1 - number("up", up, 0, 1) ** count("verifiers", verifiers, 1))


def void_probability_full(*, verifiers: int, matches: int, up: float) -> float:
    """Return the limit for q >= K and endless accounts: the binomial chance that fewer than A of V answer."""
    v = count("verifiers", verifiers, 1)
    a, u = count("matches", matches, 1, v), number("up", up, 0, 1)
    return float(sum(comb(v, i) * u**i * (1 - u) ** (v - i) for i in range(a)))


def void_probability_redrawn(*, void: float, redraws: int) -> float:
    """Return the chance of a void after up to R further draws, each of fresh accounts: void^(R + 1).

    dispute.md section 3 redraws only the segments that lack matches, which succeeds more often: an upper
    bound, and beyond the contracts.
    """
    return float(number("void", void, 0, 1) ** (count("redraws", redraws, 0) + 1))


def draw_lost_probability(*, missed: float, most_misses: int) -> float:
    """Return the chance that no draw is proved, each being `missed` with this chance: its power maxMisses + 1."""
    return float(number("missed", missed, 0, 1) ** (count("most_misses", most_misses, 0) + 1))


def least_up(
    *,
    segments: int,
    segments_per_verifier: int,
    verifiers: int,
    matches: int,
    void: float,
    accounts: int | None = None,
) -> float:
    """Return the least chance of answering with which a task ends void with chance `void` at most, to 2^-40.

    Voids fall as accounts answer more, so bisection finds it; 1.0 where accounts are too few for A.
    """
    most, low, high = number("void", void, 0, 1), 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        reached = void_probability(
            segments=segments,
            segments_per_verifier=segments_per_verifier,
            verifiers=verifiers,
            matches=matches,
            up=middle,
            accounts=accounts,
        )
        low, high = (low, middle) if reached <= most else (middle, high)
    return high


def _partitions(seats: int, accounts: int | None) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield how often the drawn accounts were drawn, descending, and the chance of that.

    Seats fall on accounts uniformly and independently: V! / prod t_i! ways to place them on chosen accounts,
    N (N - 1) ... choices of distinct ones, each set of equal multiplicities counted m! times, over N^V.
    """
    if accounts is None:
        yield (1,) * seats, 1.0
        return
    for parts in _descending(seats, seats):
        if len(parts) <= accounts:
            placed = factorial(seats) // prod(factorial(t) for t in parts)
            chosen = prod(range(accounts - len(parts) + 1, accounts + 1))
            same = prod(factorial(m) for m in Counter(parts).values())
            yield parts, placed * chosen / same / accounts**seats


def _found(accounts: int, drawn: int, wanted: int) -> float:
    """Return the chance that `TRIES` further draws bring the drawn accounts up to as many as are wanted."""
    law = {drawn: 1.0}
    for _ in range(TRIES):
        grown: dict[int, float] = {}
        for held, chance in law.items():
            new = 1 - held / accounts if held < wanted else 0.0
            grown[held] = grown.get(held, 0.0) + chance * (1 - new)
            grown[held + 1] = grown.get(held + 1, 0.0) + chance * new
        law = grown
    return law.get(wanted, 0.0)


def _descending(total: int, most: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(min(total, most), 0, -1):
        for rest in _descending(total - first, first):
            yield (first, *rest)


def _silences(parts: tuple[int, ...], up: float) -> Iterator[tuple[Counter[int], float]]:
    """Yield how many accounts of each multiplicity are silent, and the chance of that."""
    silences: list[tuple[Counter[int], float]] = [(Counter(), 1.0)]
    for times, accounts in Counter(parts).items():
        silences = [
            (silent + Counter({times: n}), chance * comb(accounts, n) * (1 - up) ** n * up ** (accounts - n))
            for silent, chance in silences
            for n in range(accounts + 1)
        ]
    yield from silences


@lru_cache(maxsize=1 << 16)
def _union(segments: int, drawn: int, times: int) -> tuple[tuple[int, float], ...]:
    """Return the law of the size of the union of `times` uniform sets of `drawn` out of `segments`."""
    law = {0: 1.0}
    for _ in range(times):
        grown: dict[int, float] = {}
        for size, chance in law.items():
            for new, step in _hypergeometric(segments, segments - size, drawn):
                grown[size + new] = grown.get(size + new, 0.0) + chance * step
        law = grown
    return tuple(law.items())


@lru_cache(maxsize=1 << 16)
def _hypergeometric(total: int, marked: int, drawn: int) -> tuple[tuple[int, float], ...]:
    """Return the law of how many of `marked` out of `total` are among `drawn`."""
    least, most = max(0, drawn - (total - marked)), min(marked, drawn)
    ways = comb(total, drawn)
    return tuple(
        (i, comb(marked, i) * comb(total - marked, drawn - i) / ways) for i in range(least, most + 1)
    )


@lru_cache(maxsize=1 << 16)
def _satisfied(
    segments: int, drawn: int, matches: int, silent: tuple[int, ...], answering: tuple[int, ...]
) -> float:
    """Return the chance that each silent account's segments, segment K aside, have A answers."""
    wanted = {0: 1.0}
    for times in silent:
        grown: dict[int, float] = {}
        for size, chance in wanted.items():
            for drawn_size, given in _union(segments, drawn, times):
                for new, step in _hypergeometric(segments, segments - 1 - size, drawn_size):
                    grown[size + new] = grown.get(size + new, 0.0) + chance * given * step
        wanted = grown
    return sum(
        chance * _covered(segments, drawn, matches, size, answering) for size, chance in wanted.items()
    )


@lru_cache(maxsize=1 << 16)
def _covered(segments: int, drawn: int, matches: int, size: int, answering: tuple[int, ...]) -> float:
    """Return the chance that the answering accounts' sets cover each of `size` segments A times."""
    if size == 0:
        return 1.0
    law: dict[Uncovered, float] = {(size,) + (0,) * (matches - 1): 1.0}
    for i, times in enumerate(answering):
        left = len(answering) - i
        grown: dict[Uncovered, float] = {}
        for state, chance in law.items():
            lacking = next((matches - j for j, segments_left in enumerate(state) if segments_left), 0)
            if lacking > left:
                continue  # Too few accounts are left for the least covered segment.
            for drawn_size, given in _union(segments, drawn, times):
                for after, step in _advance(state, segments, drawn_size):
                    grown[after] = grown.get(after, 0.0) + chance * given * step
        law = grown
    return law.get((0,) * matches, 0.0)


@lru_cache(maxsize=1 << 16)
def _advance(state: Uncovered, segments: int, drawn: int) -> tuple[tuple[Uncovered, float], ...]:
    """Return the law of the state after one more uniform set of `drawn`: each class moves up in part."""
    steps: list[tuple[list[int], int, int, float]] = [([], segments, drawn, 1.0)]
    for members in state:
        steps = [
            ([*moved, i], total - members, left - i, chance * given)
            for moved, total, left, chance in steps
            for i, given in _hypergeometric(total, members, left)
        ]
    law: dict[Uncovered, float] = {}
    for moved, _, _, chance in steps:
        after = tuple(members - moved[j] + (moved[j - 1] if j else 0) for j, members in enumerate(state))
        law[after] = law.get(after, 0.0) + chance
    return tuple(law.items())
