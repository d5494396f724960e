"""Types of the simulation's arrays, and the bound that prevents integer overflow.

Rows (the markets played side by side) are the last axis, so operations on seats, duties or solvers run along
contiguous memory, a vector of rows at a time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Amounts = npt.NDArray[Any]
"""Token units: int64, or Python integers."""
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MOST: Final = 1 << 62
"""Sums of a run stay below this, so that twice a sum fits int64."""
