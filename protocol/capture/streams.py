"""The Philox stream of every use of random numbers inside a step; no two uses draw the same numbers."""

from __future__ import annotations

BATCH_STREAM = 0
"""The rows of the batch."""
FIRST_OPERATION_STREAM = 1
"""The first random operation of the traced graph; the others follow in the graph's order."""
FIRST_UPDATE_STREAM = 2**31
"""The first random operation of the optimiser's update."""
STREAMS_OF_A_PART = 2**20
"""The second part of a step begins this many streams after the first, and so on (`phases`)."""
