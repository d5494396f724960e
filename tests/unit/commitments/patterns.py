"""Bytes for tests of trees and digests: any, but the same in each run."""

import numpy as np


def pattern(nbytes: int, seed: int = 0) -> bytes:
    """So many bytes by chance."""
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8).tobytes()
