"""The gradient of an embedding table: sums of rows by token (`scatter_sum`, arithmetic.md section 5).

The forward pass is the primitive `gather`.
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.indexing import scatter_sum
from protocol.numerics.kernels.fused import Fused
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import canonical
from protocol.program.builder import Builder, Value, aligned_length
from protocol.program.library.function import define

NOWHERE = -1
"""An index that `scatter_sum` drops."""
F32_BYTES = 4


def _embedding_grad(g: Tensor, index: Tensor, *, rows: int) -> Tensor:
    fused = fused_for(g)
    if isinstance(fused, Fused):
        return fused.scatter_sum(index, g, rows)
    return canonical(scatter_sum(index, g, rows))


@define("embedding_grad", kernel=_embedding_grad)
def embedding_grad(b: Builder, g: Value, index: Value, *, rows: int) -> Value:
    """f32 [rows, C] from f32 g [N, C] and i32 index [N]: row r is the sum of all g[n] with index[n] = r.

    The sums of a column of g share one exponent. A row of g whose index is outside 0 … rows-1 is left out of
    the sums, but it still affects the exponents.
    """
    count = g.shape[0]
    padded = aligned_length(count, F32_BYTES)  # so it is also aligned as i64
    columns = b.transpose(g, 0, 1)
    if padded != count:
        columns = b.pad(columns, (g.shape[1], padded), (0, 0), 0.0)
        index = b.pad(index, (padded,), (0,), NOWHERE)
    e = b.exponent(columns)
    total = b.round_scaled(b.scatter_sum(index, b.to_fixed(columns, e), rows=rows), e, p=30)
    return b.transpose(total, 0, 1)
