"""What seats have out of a convicted stake: the expected number of those that spoke up, and of those owed a fee."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import Values, counts, within
from sim.theory.escape import caught_probability, missed_probability


class Claims(NamedTuple):
    """Seats of a task, on average over all tasks, also those without a conviction."""

    spoke: Values
    """With their own challenge: each has a game's cost and its fee."""
    fees: Values
    """Attested, without the convicted segment: each has its fee."""


def expected_claims(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    accounts: ArrayLike,
) -> Claims:
    """Return the claims on a cheater with m false segments, whose dishonest seats attest whatever they have.

    An honest seat with a false segment challenges, and convicts: V h (1 - a) of them. One without attests, and has its
    fee where another seat convicts, so where one of the V - 1 others does. So does a dishonest one, unless it has the
    convicted segment itself: seats draw their segments independently, so it has with chance q / K. Of the others
    (h N - 1) / (N - 1) are honest beside an honest seat, h N / (N - 1) beside a dishonest one.
    """
    h, v, n = (
        within("honest", honest, 0, 1),
        counts("verifiers", verifiers, 1),
        counts("accounts", accounts, 2),
    )
    missed = missed_probability(segments, false, segments_per_verifier)
    share = np.asarray(segments_per_verifier, dtype=np.float64) / np.asarray(segments, dtype=np.float64)

    def others(honest_left: Values) -> Values:
        left = np.clip(honest_left / (n - 1), 0, 1)
        found = caught_probability(
            segments, false, segments_per_verifier, np.maximum(v - 1, 1), left, accounts=n - 1
        )
        return np.where(v > 1, found, 0.0)

    honest_fee = h * missed * others(h * n - 1)
    dishonest_fee = (1 - h) * (1 - share) * others(h * n)
    return Claims(np.asarray(v * h * (1 - missed)), np.asarray(v * (honest_fee + dishonest_fee)))
