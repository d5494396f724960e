"""Fed seats: what a solver must send to a seat that replays nothing, but hashes the states that it is given.

audit.md section 4: of state j of a segment, 0 ... C, a seat hashes the chunks c with (c + j) mod w = 0.
Anyone who is fed these passes as one that has replayed, so such seats are among the 1 - h that stakes are sized for.
"""

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import Values, counts, within


def fed_bytes(state_bytes: ArrayLike, steps: ArrayLike, thinning: ArrayLike) -> Values:
    """Return the bytes that feed a segment of C steps: (C + 1) b / w.

    Each chunk is hashed in every w-th state. Exact where w divides C + 1, else off by less than a state: each chunk is
    hashed in floor or ceil((C + 1) / w) of them.
    """
    b, c = within("state_bytes", state_bytes, 0), counts("steps", steps, 1)
    return np.asarray((c + 1) * b / counts("thinning", thinning, 1))


def feeding_price(
    replay_cost: ArrayLike, state_bytes: ArrayLike, steps: ArrayLike, thinning: ArrayLike
) -> Values:
    """Return the price of a byte from which on feeding a segment costs more than replaying it does."""
    return np.asarray(within("replay_cost", replay_cost, 0) / fed_bytes(state_bytes, steps, thinning))
