"""Runs one body for every row of some tensors. Each run starts from the results of the run before, as
recurrent layers need.

As with `repeat`, one program calls the body 16 times, another calls that program 16 times for 256 rows, and
so on. So each program stays small for any number of rows, and a game locates one of n rows after log16 n
calls, rounded up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from protocol.program.builder import Builder, Value
from protocol.program.library.evaluate import TensorOperations
from protocol.program.program import Program
from protocol.program.repeat import WIDTH

Step = Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""The body of a scan.

Its arguments are the builder, the carried values, one row of each tensor, and the fixed values. It returns
the next carried values, and the results.
"""


def scan(
    b: Builder | TensorOperations,
    step: Step,
    carried: Sequence[Any],
    rows: Sequence[Any],
    fixed: Sequence[Any],
    *,
    reverse: bool = False,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the carried values after all rows, and the results. Both the rows and the results are [T, …],
    and the results are in the order of the rows.

    With `reverse`, the last row is processed first; the order of the results stays the same.
    """
    if isinstance(b, TensorOperations):
        return _on_tensors(b, step, carried, rows, fixed, reverse)
    found = _Scan(step, len(carried), len(rows), reverse).runs(b, [*carried, *rows, *fixed])
    return tuple(found[: len(carried)]), tuple(found[len(carried) :])


def _on_tensors(
    b: TensorOperations,
    step: Step,
    carried: Sequence[Any],
    rows: Sequence[Any],
    fixed: Sequence[Any],
    reverse: bool,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    count = rows[0].shape[0]
    results: list[Sequence[Any]] = []
    for t in reversed(range(count)) if reverse else range(count):
        carried, made = step(b, carried, [x[t] for x in rows], fixed)
        results.append(made)
    columns = zip(*(reversed(results) if reverse else results), strict=True)
    return tuple(carried), tuple(torch.stack(column) for column in columns)


class _Scan:
    """Builds the programs of one scan, one for each number of rows."""

    def __init__(self, step: Step, carried: int, rows: int, reverse: bool) -> None:
        self._step, self._carried, self._rows, self._reverse = step, carried, rows, reverse
        self._programs: dict[int, Program] = {}

    def runs(self, b: Builder, operands: Sequence[Value]) -> list[Value]:
        """Record at most 16 calls; return the carried values, then the results.

        Each call processes the same number of rows: the largest power of 16 below the number of all rows, or
        1 if there is only one. Only the call for the last rows may process fewer.
        """
        first, last = self._carried, self._carried + self._rows
        carried, rows, fixed = operands[:first], operands[first:last], operands[last:]
        parts: list[tuple[Value, ...]] = []
        for start, stop in self._cut(rows[0].shape[0]):
            pieces = [x if stop - start == x.shape[0] else b.slice(x, 0, start, stop) for x in rows]
            given = [*carried, *pieces, *fixed]
            found = b.call(self._program(stop - start, given), *given)
            carried, results = found[:first], found[first:]
            parts.append(results)
        if self._reverse:
            parts.reverse()
        joined = [x[0] if len(x) == 1 else b.concat(x, 0) for x in zip(*parts, strict=True)]
        return [*carried, *joined]

    def _cut(self, count: int) -> list[tuple[int, int]]:
        """The parts into which `count` rows are cut, as (start, stop), in the order in which they run."""
        size = 1
        while size * WIDTH < count:
            size *= WIDTH
        bounds = [*range(0, count, size), count]
        parts = list(itertools.pairwise(bounds))
        return parts[::-1] if self._reverse else parts

    def _program(self, count: int, given: Sequence[Value]) -> Program:
        """The program for `count` rows; for one row it is the body itself."""
        if count not in self._programs:
            b = Builder(f"scan {count}")
            operands = [b.input(x.type) for x in given]
            for value in self._one(b, operands) if count == 1 else self.runs(b, operands):
                b.output(value)
            self._programs[count] = b.build()
        return self._programs[count]

    def _one(self, b: Builder, operands: Sequence[Value]) -> list[Value]:
        first, last = self._carried, self._carried + self._rows
        rows = [b.reshape(x, x.shape[1:]) for x in operands[first:last]]
        carried, results = self._step(b, operands[:first], rows, operands[last:])
        return [*carried, *(b.reshape(x, (1, *x.shape)) for x in results)]
