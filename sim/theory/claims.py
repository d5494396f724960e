"""Seats' claims on a convicted stake: the expected numbers of seats that challenged, and of seats owed a fee."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import Values, counts, within
from sim.theory.escape import caught_probability, missed_probability


class Claims(NamedTuple):
    """Mean numbers of compensated seats per task. A task without a conviction counts as 0."""

    spoke: Values
    """Seats that challenged: each receives the cost of a game and the seat's fee."""
    fees: Values
    """Seats that attested and do not have the convicted segment: each receives its fee."""


def expected_claims(
    *,
    segments: ArrayLike,
    false: ArrayLike,
    segments_per_verifier: ArrayLike,
    verifiers: ArrayLike,
    honest: ArrayLike,
    accounts: ArrayLike,
) -> Claims:
    """Return the claims on a cheater with false segments; dishonest seats attest whatever they are served.

    Of K `segments`, m are `false`. Each of V seats (`verifiers`) draws q segments (`segments_per_verifier`),
    and has no false segment with chance a. Of N `accounts`, a share h is `honest`.

    An honest seat that has a false segment challenges, and convicts: on average V h (1 - a) seats do. An
    honest seat that has no false segment attests, and receives its fee if one of the V - 1 other seats
    convicts. A dishonest seat also receives its fee if one of the others convicts, unless the dishonest seat
    itself has the convicted segment. The chance that it has this segment is q / K, because seats draw their
    segments independently. The share of honest accounts among the other accounts is (h N - 1) / (N - 1) for
    an honest seat, and h N / (N - 1) for a dishonest one.
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
