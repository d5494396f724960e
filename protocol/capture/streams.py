"""The Philox streams of a step. Each use of random numbers has its own stream, so no two uses draw the same
numbers.
"""

from __future__ import annotations

BATCH_STREAM = 0
"""The stream that draws the rows of the batch."""
FIRST_OPERATION_STREAM = 1
"""The stream of the traced graph's first random operation. The streams of the others follow in the graph's order."""
FIRST_UPDATE_STREAM = 2**31
"""The stream of the first random operation in the optimiser's update."""
STREAMS_OF_A_PART = 2**20
"""Difference between the stream numbers of a part of a step and those of the part before it (`assembly.part`)."""
