"""Committing: tree hashing beside raw SHA-256 on one core, and a tree of a million leaves."""

from __future__ import annotations

import hashlib
import os
from statistics import median

from benchmarks.measure import Row, interleaved, middle, seconds
from protocol.commitments import Tree, tensor_root

TENSOR_BYTES = 32 << 20
LEAVES = 1_000_000


def rows() -> list[Row]:
    """Speed of a tensor root as a share of SHA-256's own; seconds for a million 32-byte leaves."""
    data = os.urandom(TENSOR_BYTES)
    ratios = interleaved(lambda: hashlib.sha256(data).digest(), lambda: tensor_root(data), rounds=15)
    share, spread = middle(ratios)
    leaves = os.urandom(32 * LEAVES)
    times = [seconds(lambda: Tree.from_rows(leaves, 32).root) for _ in range(5)]
    return [
        Row("tensor root / raw SHA-256, speed, one core", f"{share:.2f}", "at least 0.3", spread),
        Row("tree of 1,000,000 32-byte leaves", f"{median(times):.2f} s", "3 s"),
    ]
