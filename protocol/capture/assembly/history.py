"""The history of the metrics, kept in the state: one column for each of the most recent steps. A new column
overwrites the oldest one.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.program.builder import Builder, Value
from protocol.program.library.integers import quotient
from protocol.program.library.rows import count_up


def noted(b: Builder, kept: Value, measured: Sequence[Value], step: Value) -> Value:
    """Write the M scalars `measured` into column `step` mod N of the history `kept`, and return the new
    history. The history is f32 [M, N]; `step` is i32.
    """
    rows, columns = kept.shape
    column = b.sub(step, b.mul(quotient(b, step, columns), b.i32(columns)))
    values = [b.reshape(value, (1, 1)) for value in measured]
    now = values[0] if rows == 1 else b.concat(values, 0)
    return b.select(b.eq(count_up(b, columns), column), now, kept)
