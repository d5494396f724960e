"""Concatenation of any number of vectors; an instruction has at most 255 operands."""

from __future__ import annotations

from protocol.program.builder import Builder, Value
from protocol.program.instruction import MAX_OPERANDS


def concatenated(b: Builder, pieces: list[Value]) -> Value:
    """One or more vectors [n], [m], … as one [n + m + …]."""
    while len(pieces) > 1:
        pieces = [b.concat(pieces[k : k + MAX_OPERANDS], 0) for k in range(0, len(pieces), MAX_OPERANDS)]
    return pieces[0]
