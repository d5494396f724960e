"""The batch of a step: rows of the dataset, drawn inside the program."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.capture.streams import BATCH_STREAM
from protocol.program.builder import Builder, Value
from protocol.program.execute import Kernel
from protocol.program.library.function import LibraryFunction
from protocol.program.library.sampling import draw_batch, draw_from_epoch


def draw(
    b: Builder, dataset: Mapping[str, Value], key: Value, step: Value, batch_size: int, replacement: bool
) -> Value:
    """i32 [B]: the indices of the rows that this step sees."""
    rows = next(iter(dataset.values())).shape[0]
    index: Value = _function(replacement).call(b, key, step, **_attributes(rows, batch_size))
    return index


def drawn(rows: int, batch_size: int, replacement: bool) -> Kernel:
    """What `draw` writes, for tensors: of key and step."""
    return _function(replacement).kernel(_attributes(rows, batch_size))


def _function(replacement: bool) -> LibraryFunction:
    return draw_batch if replacement else draw_from_epoch


def _attributes(rows: int, batch_size: int) -> dict[str, int]:
    return {"batch": batch_size, "rows": rows, "stream": BATCH_STREAM}
