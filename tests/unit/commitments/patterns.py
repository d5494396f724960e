"""Reproducible random bytes for tests of trees and digests."""

import numpy as np


def pattern(nbytes: int, seed: int = 0) -> bytes:
    """`nbytes` random bytes, determined by the seed."""
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8).tobytes()
