"""One body for every row of some tensors, each on the result of the one before: recurrent layers.

As with `repeat`, 16 rows are a program that calls the body 16 times, 256 one that calls that 16 times, and so on: a
program's size does not grow with the number of rows, and a game goes through n of them in log16 n calls.
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
"""From the builder, the carried values, a row of each tensor and the fixed values to the next carried values and the
results.
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
    """The carried values after all rows [T, …], and results [T, …], in the rows' order. With `reverse` the last row
    comes first.
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
    """The programs of one scan, by number of rows."""

    def __init__(self, step: Step, carried: int, rows: int, reverse: bool) -> None:
        self._step, self._carried, self._rows, self._reverse = step, carried, rows, reverse
        self._programs: dict[int, Program] = {}

    def runs(self, b: Builder, operands: Sequence[Value]) -> list[Value]:
        """Record at most 16 calls: the largest power of 16 below the number of rows as often as it fits, then the rest.
        What is carried, then the results.
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
        """The parts of that many rows, in the order in which they run."""
        size = 1
        while size * WIDTH < count:
            size *= WIDTH
        bounds = [*range(0, count, size), count]
        parts = list(itertools.pairwise(bounds))
        return parts[::-1] if self._reverse else parts

    def _program(self, count: int, given: Sequence[Value]) -> Program:
        """The program for that many rows: the body itself for one."""
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
