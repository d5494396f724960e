"""The batch of a step: rows of the dataset, drawn inside the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from protocol.capture.streams import BATCH_STREAM
from protocol.program.builder import Builder, Value
from protocol.program.library.function import LibraryFunction
from protocol.program.library.sampling import draw_batch, draw_from_epoch


@dataclass(frozen=True)
class Drawing:
    """How a step draws its batch: the number of rows, the number of equal parts that the rows are divided
    into, and whether rows are drawn with replacement.
    """

    batch_size: int
    micro_batches: int = 1
    replacement: bool = True

    def draw(self, b: Builder, dataset: Mapping[str, Value], key: Value, step: Value) -> Value:
        """i32 [B]: the indices of the rows that this step uses."""
        rows = next(iter(dataset.values())).shape[0]
        index: Value = self._function.call(b, key, step, **self._attributes(rows))
        return index

    def drawn(self, rows: int, key: Tensor, step: Tensor) -> Tensor:
        """The same indices as `draw`, computed on tensors."""
        (index,) = self._function.kernel(self._attributes(rows))((key, step))
        return index

    @property
    def _function(self) -> LibraryFunction:
        return draw_batch if self.replacement else draw_from_epoch

    def _attributes(self, rows: int) -> dict[str, int]:
        return {"batch": self.batch_size, "rows": rows, "stream": BATCH_STREAM}
