"""The operation lists of docs/spec/arithmetic.md section 6 are run from the page. Their results have the bits
of the test vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from protocol.numerics.reference import floats, integers
from protocol.numerics.types import DType
from tests.toolchain.project import REPOSITORY
from tests.vectors.readings import load, rows

PAGE = REPOSITORY / "docs" / "spec" / "arithmetic.md"


@dataclass(frozen=True)
class F32:
    """An f32, stored as its bits, with the operations of section 2."""

    bits: int

    def __add__(self, other: F32) -> F32:
        return F32(floats.add(self.bits, other.bits))

    def __sub__(self, other: F32) -> F32:
        return F32(floats.sub(self.bits, other.bits))

    def __mul__(self, other: F32) -> F32:
        return F32(floats.mul(self.bits, other.bits))

    def __truediv__(self, other: F32) -> F32:
        return F32(floats.div(self.bits, other.bits))


def lists() -> dict[str, Any]:
    """The functions defined by the page's Python block."""
    names: dict[str, Any] = {
        "f32": F32,
        "minimum": lambda x, y: F32(floats.minimum(x.bits, y.bits)),
        "maximum": lambda x, y: F32(floats.maximum(x.bits, y.bits)),
        "rint": lambda x: F32(floats.rint(x.bits)),
        "scale": lambda x, k: F32(floats.scale(x.bits, k)),
        "sqrt": lambda x: F32(floats.sqrt(x.bits)),
        "neg": lambda x: F32(floats.neg(x.bits)),
        "abs": lambda x: F32(floats.abs_(x.bits)),
        "lt": lambda x, y: floats.lt(x.bits, y.bits),
        "eq": lambda x, y: floats.eq(x.bits, y.bits),
        "select": lambda c, x, y: F32(floats.canonical((x if c else y).bits)),
        "copysign": lambda x, y: F32(floats.canonical(x.bits | y.bits & floats.SIGN)),
        "i32": lambda x: integers.cast(x.bits, DType.F32, DType.I32),
        "f32_of_i32": lambda n: F32(integers.cast(integers.wrap(n, DType.I32), DType.I32, DType.F32)),
        "bits_i32": lambda x: integers.wrap(floats.canonical(x.bits), DType.I32),
        "from_bits_i32": lambda n: F32(floats.canonical(n & 0xFFFFFFFF)),
    }
    (block,) = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text())
    exec(block, names)  # noqa: S102 - a page of this repository
    return names


LISTS = lists()


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt"])
def test_a_list_has_the_bits_of_the_vectors(name: str) -> None:
    function: Callable[[F32], F32] = LISTS[name]
    compared = 0
    for row in rows(load("numerics.json")["functions"]):
        if row["name"] != name:
            continue
        for x, due in zip(words(row["x"]), words(row["out"]), strict=True):
            assert function(F32(floats.canonical(x))).bits == due
            compared += 1
    table = load("elementary_errors.json")["functions"][name]
    for x, due in zip(table["at"], table["result"], strict=True):
        assert function(F32(floats.canonical(int(x, 16)))).bits == int(due, 16)
    assert compared > 90


def test_the_examples_of_the_page() -> None:
    assert LISTS["exp"](F32(0x3F800000)).bits == 0x402DF854
