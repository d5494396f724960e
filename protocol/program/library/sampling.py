"""Which rows of the dataset a step sees: drawn inside the program by a counter-based generator, so nobody chooses."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import cast, mulhi
from protocol.numerics.philox import philox
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define


def _draw_batch(key: Tensor, step: Tensor, *, batch: int, rows: int, stream: int) -> Tensor:
    words = philox(key, step, stream, (batch,))
    bound = torch.full((), rows, dtype=torch.int32, device=key.device)
    return cast(mulhi(words, bound), DType.U32, DType.I32)


@define("draw_batch", kernel=_draw_batch)
def draw_batch(b: Builder, key: Value, step: Value, *, batch: int, rows: int, stream: int) -> Value:
    """u32 [2] key and u32 [] step to i32 [batch]: row numbers in 0 … rows-1, with replacement.

    floor(word * rows / 2^32) favours no row by more than rows / 2^32.
    """
    words = b.philox(key, step, stream, (batch,))
    return b.cast(b.mulhi(words, b.constant(DType.U32, (), rows)), DType.I32)
