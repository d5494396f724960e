"""How much a task's digests are thinned: the least w at which they take a seat at most a twentieth of its replay.

Pure. audit.md section 4 defines thinning. The rule compares operations with hashed bytes and needs no speed
of a machine, since a faster one does both faster.
"""

from __future__ import annotations

from typing import Final

from protocol.commitments.digests import MAX_THINNING

MOST: Final = 0.05
"""Share of a replay that digesting may take."""
OPERATIONS_A_BYTE: Final = 200
"""Operations of a replay in the time of hashing one byte under a salt. In a step of the GPT of 10.8M one core of an
AMD EPYC with AVX-512 VNNI does 1.2 x 10^11 operations a second, and it hashes 1.06 x 10^9 bytes: 117, and 98 for the
ResNet-18. With AMX the step takes 0.6 of that time. Too large a number leads to a larger w, not to more time spent.
"""
NODE: Final = 2 / 34
"""SHA-256 blocks per node, relative to those of a chunk under a salt."""


def recommended_thinning(segment_steps: int, step_operations: int, state_bytes: int) -> int:
    """The least power of two w, up to 64 and `segment_steps`, at which digesting takes at most a twentieth of a replay;
    the largest of them if it takes more at each.

    `step_operations` are those of the terms (`protocol.program.cost`), `state_bytes` the canonical bytes of a state.
    """
    thinning = 1
    while 2 * thinning <= min(MAX_THINNING, segment_steps):
        if digesting_share(thinning, segment_steps, step_operations, state_bytes) <= MOST:
            break
        thinning *= 2
    return thinning


def digesting_share(thinning: int, segment_steps: int, step_operations: int, state_bytes: int) -> float:
    """Time to digest a segment's C + 1 states over the time to replay its C steps.

    Of each state one chunk in `thinning` is hashed, and for each of these 1 + log2(thinning) nodes.
    """
    hashed = state_bytes / thinning * (1 + NODE * thinning.bit_length())
    return (segment_steps + 1) * hashed * OPERATIONS_A_BYTE / (segment_steps * step_operations)
