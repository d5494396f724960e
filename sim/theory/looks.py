"""Second looks: how many there are, what they take from parties that do not replay, and who skips in
equilibrium.

Three things are assumed: the result is right, every account has one stake unit, and all accounts attest.
There are two kinds of accounts. The first kind replays both seats and looks. The second kind, the skippers,
skips some or all replays, and reveals when it is looked at. A skipper is either a rubber stamp, which skips
seats and looks, or a lazy looker, which skips only looks. If a looker replays and finds a skipper, it takes
half of the skipper's lock; the other half burns. Amounts are token units as floats.
"""

from math import comb
from typing import NamedTuple

import numpy as np

from protocol.dispute.looks import LEVELS
from sim.theory.bounds import TheoryError, Values, count, number


class Looking(NamedTuple):
    """Terms and costs of seats and looks."""

    verifiers: int
    segments: int
    """q: segments of a seat."""
    chance: float
    """e: the chance that a segment of a seat is picked for a look. It is also the chance that a look is
    picked for a look of the next level.
    """
    fee: float
    """Fee per segment."""
    replay: float
    """Cost of replaying a segment."""
    lock: float
    attest: float = 0.0
    """Gas of an attestation."""
    reveal: float = 0.0
    """Gas of the target's reveal."""
    accuse: float = 0.0
    """Gas of an accusation, plus the payment to the solver for the game that the accusation ends."""

    @property
    def slots(self) -> int:
        """V q: the number of segments of all seats, which is also the most looks that a task can have."""
        return self.verifiers * self.segments


class Earned(NamedTuple):
    """For each kind of account, the total earnings of its members, in token units per task. Also the number
    of locks lost per task.
    """

    replaying: float
    skipping: float
    caught: float
    """Locks lost per task."""


class Skipping(NamedTuple):
    """Shares of skipped replays in equilibrium."""

    by_level: tuple[float, ...]
    """Shares for seats, then for looks of level 1, 2 and so on."""
    overall: float
    """Share of skipped replays among all replays, those of seats and of looks together."""


def looks_by_level(*, slots: int, chance: float) -> Values:
    """Return the mean number of looks at each of the levels 1 ... 4, if every look is attested. The result
    has shape (4,).

    It is exact: m looks of a level lead to a binomial number of looks on the next level, until V q looks have
    been picked in all.
    """
    n, e = count("slots", slots, 1), number("chance", chance, 0, 1)
    # Chance of m looks on the level when there are t in all.
    law = np.zeros((n + 1, n + 1))
    law[n, 0] = 1
    means = []
    for _ in range(LEVELS):
        after = np.zeros_like(law)
        for below, total in zip(*law.nonzero()):
            for above in range(below + 1):
                picked = min(above, n - total)
                one = comb(below, above) * e**above * (1 - e) ** (below - above)
                after[picked, total + picked] += law[below, total] * one
        law = after
        means.append(float(law.sum(axis=1) @ np.arange(n + 1)))
    return np.array(means)


def caught_seat(*, segments: int, chance: float, accounts: int, skippers: int) -> float:
    """Return the chance that a skipper's seat loses its lock because one of its lookers replays.

    Lookers are distinct accounts other than the seat's account, which counts as one of the `skippers`. So
    there must be more `accounts` than `segments`; raises `TheoryError` otherwise.
    """
    q, e = count("segments", segments, 1), number("chance", chance, 0, 1)
    others = count("accounts", accounts, q + 1) - 1
    fellows = count("skippers", skippers, 1, accounts) - 1
    kept = 0.0
    for picked in range(q + 1):
        blind = np.prod([max(0, fellows - i) / (others - i) for i in range(picked)])
        kept += comb(q, picked) * e**picked * (1 - e) ** (q - picked) * float(blind)
    return 1 - kept


def earned(looking: Looking, *, accounts: int, skippers: int, in_seats: bool = True) -> Earned:
    """Return the earnings of both kinds, for 1 <= `skippers` < `accounts`.

    Without `in_seats`, skippers replay seats and skip only looks.
    """
    n, s = count("accounts", accounts, 2), count("skippers", skippers, 1, accounts - 1)
    honest = n - s
    v, q = looking.verifiers, looking.segments
    looks = looks_by_level(slots=looking.slots, chance=looking.chance)
    met = caught_seat(segments=q, chance=looking.chance, accounts=n, skippers=s) if in_seats else 0.0
    seats = v * s / n * met
    # A skipped look is caught if the look above it, of which there is at most one, is replayed.
    caught = seats + float(looks[1:].sum()) * s / n * honest / (n - 1)
    lost = caught * looking.lock + seats * q * looking.fee
    # All paid segments, and the earnings without replays and locks: fees, attestations and reveals.
    paid = v * q + float(looks.sum())
    alike = (
        paid * looking.fee - (v + float(looks.sum())) * looking.attest - float(looks.sum()) * looking.reveal
    )
    replays = 0 if in_seats else v * q
    return Earned(
        honest / n * (alike - paid * looking.replay) + caught * (looking.lock / 2 - looking.accuse),
        s / n * (alike - replays * looking.replay) - lost,
        caught,
    )


def gain_of_skipping(looking: Looking, *, accounts: int, skippers: int, in_seats: bool = True) -> float:
    """Return how much more a skipper earns than a verifier that replays, per seat, in token units."""
    both = earned(looking, accounts=accounts, skippers=skippers, in_seats=in_seats)
    each = looking.verifiers / accounts
    return (both.skipping / skippers - both.replaying / (accounts - skippers)) / each


def tipping_share(looking: Looking, *, accounts: int) -> float:
    """Return the least share of rubber stamps at which rubber-stamping earns more than replaying; infinite if
    it never does.

    Below this share, rubber stamps die out. The more rubber stamps there are, the less likely looks are to
    find them.
    """
    for skippers in range(1, count("accounts", accounts, 2)):
        if gain_of_skipping(looking, accounts=accounts, skippers=skippers) > 0:
            return skippers / accounts
    return float("inf")


def skipping_by_level(looking: Looking) -> Skipping:
    """Return the equilibrium of accounts that choose separately for each level.

    Level 0 are the seats. Two kinds of looks cannot be looked at: those of the fourth level, and the last
    look of a task that has V q looks, which is the most that a task can have. No look is above level n =
    min(4, V q). With the chance e of being picked for a look, the cost c of a replay, the lock L and the cost
    a of an accusation:

    - On level n - 1, a share x = c / (L / 2 - a) skips, so that lookers on level n are indifferent.
    - On level n, a share s_n skips, so that accounts on level n - 1 are indifferent: e (1 - s_n) L / 2 = c.
      Only half of a lock counts, because a caught account may be its own looker.
    - On all lower levels, everybody replays, because e (1 - x) L / 2 > c.

    One case is ignored: a task may reach V q looks before level n. The account of its last look then behaves
    as on level n, but this is rare. Raises TheoryError if the lock is too small for this equilibrium.
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
    last = min(LEVELS, looking.slots)
    shares = (*(0.0 for _ in range(last - 1)), rare, 1 - looking.replay / looked)
    weights = [looking.slots, *looks_by_level(slots=looking.slots, chance=looking.chance)[:last]]
    return Skipping(shares, float(np.dot(shares, weights) / sum(weights)))
