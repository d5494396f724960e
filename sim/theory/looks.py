"""Second looks: how many there are, what they take from whoever does not replay, and who skips in equilibrium.

Assumes a right result, one stake unit an account, accounts that all attest, and two kinds of them: those that replay
in seats and looks alike, and rubber stamps, which replay in neither and reveal when they are looked at. A looker that
replays takes half of the lock of a stamp that it meets; the other half burns. Amounts are token units as floats.
"""

from math import comb
from typing import NamedTuple

import numpy as np

from protocol.tasks.economics import LOOK_LEVELS
from sim.theory.bounds import TheoryError, Values, count, number


class Looking(NamedTuple):
    """Terms and costs of seats and looks."""

    verifiers: int
    segments: int
    """q: of a seat."""
    chance: float
    """e: that a segment of a seat, or a look of the level below, is picked."""
    fee: float
    """Of a segment."""
    replay: float
    """Cost of replaying a segment."""
    lock: float
    attest: float = 0.0
    """Gas of an attestation."""
    reveal: float = 0.0
    """Gas of who is looked at."""
    accuse: float = 0.0
    """Gas of an accusation, and what the solver is paid for the game that it ends."""

    @property
    def slots(self) -> int:
        """V q."""
        return self.verifiers * self.segments


class Earned(NamedTuple):
    """Of all members of a kind together, token units a task."""

    replaying: float
    stamping: float


class Skipping(NamedTuple):
    """Shares that do not replay, in equilibrium."""

    by_level: tuple[float, ...]
    """Of seats, then of looks of level 1 ... 4."""
    overall: float
    """Of all segments that are to be replayed."""


def looks_by_level(*, slots: int, chance: float) -> Values:
    """Return the mean numbers of looks of level 1 ... 4, (4,), where every look is attested.

    Exact: m looks of a level have a binomial number above them, cut off where V q looks have been picked in all.
    """
    n, e = count("slots", slots, 1), number("chance", chance, 0, 1)
    # Chance of m looks on the level where there are t in all.
    law = np.zeros((n + 1, n + 1))
    law[n, 0] = 1
    means = []
    for _ in range(LOOK_LEVELS):
        after = np.zeros_like(law)
        for below, total in zip(*law.nonzero()):
            for above in range(below + 1):
                picked = min(above, n - total)
                one = comb(below, above) * e**above * (1 - e) ** (below - above)
                after[picked, total + picked] += law[below, total] * one
        law = after
        means.append(float(law.sum(axis=1) @ np.arange(n + 1)))
    return np.array(means)


def look_draws(*, slots: int, chance: float) -> float:
    """Return the mean number of first draws of levels: one, and one above each level that has looks, to the fourth.

    The cap of V q looks ends levels above it only where all slots are picked, and is left out: a little high.
    """
    n, e = count("slots", slots, 1), number("chance", chance, 0, 1)
    return 1 + sum(1 - (1 - e**level) ** n for level in range(1, LOOK_LEVELS)) if e else 0.0


def caught_seat(*, segments: int, chance: float, accounts: int, stamps: int) -> float:
    """Return the chance that a stamp's seat loses its lock: one of its looks is an honest account's.

    Lookers are distinct accounts other than the seat's own; `stamps` counts it too.
    """
    q, e = count("segments", segments, 1), number("chance", chance, 0, 1)
    others = count("accounts", accounts, 2) - 1
    fellows = count("stamps", stamps, 1, accounts) - 1
    kept = 0.0
    for picked in range(q + 1):
        blind = np.prod([max(0, fellows - i) / (others - i) for i in range(picked)])
        kept += comb(q, picked) * e**picked * (1 - e) ** (q - picked) * float(blind)
    return 1 - kept


def earned(looking: Looking, *, accounts: int, stamps: int) -> Earned:
    """Return what both kinds earn. 1 <= `stamps` < `accounts`."""
    n, s = count("accounts", accounts, 2), count("stamps", stamps, 1, accounts - 1)
    honest = n - s
    v, q = looking.verifiers, looking.segments
    looks = looks_by_level(slots=looking.slots, chance=looking.chance)
    # Seats that lose their lock, and looks of the first three levels that do: of each at most one.
    seats = v * s / n * caught_seat(segments=q, chance=looking.chance, accounts=n, stamps=s)
    caught = float(looks[1:].sum()) * s / n * honest / (n - 1)
    taken = (seats + caught) * (looking.lock / 2 - looking.accuse)
    lost = (seats + caught) * looking.lock + seats * q * looking.fee
    # Segments that are paid for, attestations, and reveals, in all.
    paid = v * q + float(looks.sum())
    gas = (v + float(looks.sum())) * looking.attest + float(looks.sum()) * looking.reveal
    alike = paid * looking.fee - gas
    return Earned(
        honest / n * (alike - paid * looking.replay) + taken,
        s / n * alike - lost,
    )


def gain_of_skipping(looking: Looking, *, share: float) -> float:
    """Return what a stamp earns more than an honest account, for each seat that it has, where a `share` of very many
    accounts are stamps. Looks are counted by their number for each seat.
    """
    s = number("share", share, 0, 1)
    v, q, e = looking.verifiers, looking.segments, looking.chance
    looks = looks_by_level(slots=looking.slots, chance=e)
    met = 1 - (1 - e * (1 - s)) ** q
    saved = (q + float(looks.sum()) / v) * looking.replay
    lost = met * (looking.lock + q * looking.fee) + float(looks[1:].sum()) / v * (1 - s) * looking.lock
    # Of seats each is worth half a lock once; honest lookers share what all of them are worth.
    found = s * (met / (1 - s) if s < 1 else q * e) + s * float(looks[1:].sum()) / v
    return saved - lost - found * (looking.lock / 2 - looking.accuse)


def skipping_share(looking: Looking) -> float:
    """Return the share of stamps at which stamping and replaying earn the same, where accounts do the same in seats
    and looks: the largest that more of them do not gain by; 0 where stamping never pays, 1 where it always does.
    """
    shares = np.linspace(0, 1, 1001)
    gains = np.array([gain_of_skipping(looking, share=float(share)) for share in shares])
    pays = gains > 0
    if not pays.any():
        return 0.0
    return float(shares[pays.nonzero()[0][-1]])


def skipping_by_level(looking: Looking) -> Skipping:
    """Return the equilibrium of accounts that may do otherwise on each level.

    Nobody looks at the fourth level. So there half a lock must be found often enough: x = c / (L / 2 - a) of the looks
    of the third level skip, and so many of the fourth that the third is indifferent: e (1 - s_4) L / 2 = c, as only
    half of a lock is feared (who is caught may be its own looker). Below it everybody replays, for e (1 - x) L / 2 > c.

    Raises TheoryError where the lock is too small for that, as it is where not even seats are deterred.
    """
    half = looking.lock / 2
    prize = half - looking.accuse
    rare = looking.replay / prize if prize > 0 else 1.0
    looked = looking.chance * half
    if looked <= 0 or rare >= 1 or looked * (1 - rare) <= looking.replay:
        raise TheoryError(
            f"lock {looking.lock:g} at a look chance of {looking.chance:g}: expected it to deter seats from skipping a "
            f"cost of {looking.replay:g}; raise it"
        )
    shares = (0.0, 0.0, 0.0, rare, 1 - looking.replay / looked)
    weights = np.concatenate([[looking.slots], looks_by_level(slots=looking.slots, chance=looking.chance)])
    return Skipping(shares, float(np.dot(shares, weights) / weights.sum()))
