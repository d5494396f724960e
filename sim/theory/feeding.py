"""Fed seats do not replay a segment: they hash states that the solver sends them. This module computes how
much data the solver must send.

By audit.md section 4, a seat hashes some chunks of each state j = 0 ... C of a segment: the chunks c with (c
+ j) mod w = 0. A seat that is fed these chunks looks as if it had replayed, so such seats count towards the
dishonest share 1 - h that stakes assume.
"""

import numpy as np
from numpy.typing import ArrayLike

from sim.theory.bounds import Values, counts, within


def fed_bytes(state_bytes: ArrayLike, steps: ArrayLike, thinning: ArrayLike) -> Values:
    """Return the number of bytes that a solver must send to feed one segment of C steps to a seat. It is (C +
    1) b / w, where b is `state_bytes` and w is `thinning`.

    Each chunk is hashed in every w-th state. The number is exact if w divides C + 1, and otherwise off by
    less than a state, because each chunk is hashed in floor or ceil((C + 1) / w) states.
    """
    b, c = within("state_bytes", state_bytes, 0), counts("steps", steps, 1)
    return np.asarray((c + 1) * b / counts("thinning", thinning, 1))


def feeding_price(
    replay_cost: ArrayLike, state_bytes: ArrayLike, steps: ArrayLike, thinning: ArrayLike
) -> Values:
    """Return the price per byte above which feeding a segment costs more than replaying it."""
    return np.asarray(within("replay_cost", replay_cost, 0) / fed_bytes(state_bytes, steps, thinning))
