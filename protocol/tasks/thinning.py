"""The recommended thinning of a task: the least w for which digesting takes at most a twentieth of a seat's
replay.

Pure. audit.md section 4 defines thinning. The rule compares operations with hashed bytes. It does not depend
on a machine's speed, since a faster machine is faster at both.
"""

from __future__ import annotations

from typing import Final

from protocol.commitments.digests import MAX_THINNING

MOST: Final = 0.05
"""Limit on the time that digesting takes, as a share of the time of a replay."""
OPERATIONS_A_BYTE: Final = 200
"""Number of operations that a replay does in the time in which one byte is hashed under a salt. One core of
an AMD EPYC with AVX-512 VNNI does 1.2 x 10^11 operations a second in a step of the 10.8M GPT, and hashes 1.06
x 10^9 bytes a second: a ratio of 117. For the ResNet-18 the ratio is 98. With AMX, a step takes only 0.6
times as long. If this constant is too large, w is larger than necessary, but a larger w does not make
digesting slower.
"""
NODE: Final = 2 / 34
"""Cost of hashing a node, as a share of the cost of hashing a chunk under a salt. The costs are counted in
SHA-256 blocks.
"""


def recommended_thinning(segment_steps: int, step_operations: int, state_bytes: int) -> int:
    """The recommended w: the least power of two for which digesting takes at most a twentieth of a replay. w
    is at most 64 and at most `segment_steps`. If no allowed w is large enough, the result is the largest
    allowed w.

    `step_operations` is the field of the terms (`protocol.program.cost`), and `state_bytes` the canonical
    bytes of a state.
    """
    thinning = 1
    while 2 * thinning <= min(MAX_THINNING, segment_steps):
        if digesting_share(thinning, segment_steps, step_operations, state_bytes) <= MOST:
            break
        thinning *= 2
    return thinning


def digesting_share(thinning: int, segment_steps: int, step_operations: int, state_bytes: int) -> float:
    """Time to digest a segment's C + 1 states, as a share of the time to replay its C steps.

    In each state, one of every `thinning` chunks is hashed. For each hashed chunk, 1 + log2(thinning) nodes
    are hashed too.
    """
    hashed = state_bytes / thinning * (1 + NODE * thinning.bit_length())
    return (segment_steps + 1) * hashed * OPERATIONS_A_BYTE / (segment_steps * step_operations)
