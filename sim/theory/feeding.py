"""Fed seats do not replay a segment: they hash states that the solver sends them. This module computes how
much data the solver must send.

By audit.md section 4, a seat hashes some chunks of each state j = 0 ... C of a segment of C steps. They are
the chunks c with (c + j) mod w = 0, where w is the thinning. A seat that is fed these chunks cannot be told
from one that replayed. So the formulas for stakes count such seats as dishonest. They are part of the share 1
- h, where h is the honest share.
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
