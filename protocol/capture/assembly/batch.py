"""The batch of a step: rows of the dataset, drawn with replacement inside the program."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.capture.streams import BATCH_STREAM
from protocol.program.builder import Builder, Value
from protocol.program.library import sampling


def draw(b: Builder, dataset: Mapping[str, Value], key: Value, step: Value, batch_size: int) -> Value:
    """i32 [B]: the indices of the rows that this step sees."""
    rows = next(iter(dataset.values())).shape[0]
    index: Value = sampling.draw_batch.call(b, key, step, batch=batch_size, rows=rows, stream=BATCH_STREAM)
    return index
