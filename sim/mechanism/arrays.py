"""Types of the simulation's arrays, and the one bound that integers need.

Rows, the markets that are played side by side, lie along the last axis: whatever is done to seats, duties or solvers
then runs along memory, a vector of rows at a time.
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
"""No sum of a run may reach this: twice it is 2^63."""
