"""Writes the operation lists of the functions of `numerics.elementary` as C++ code.

`python -m protocol.numerics.kernels.lists` writes native/lists.h. For each operation of a list, in order, the
file has one statement on single values, and the compiler vectorises these statements. Because the file is
made from the lists, the compiled functions have the same coefficients. A test checks that the file is up to
date.
"""

from __future__ import annotations

from pathlib import Path

from protocol.numerics import elementary

FILE = Path(__file__).parent / "native" / "lists.h"
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")

HEAD = """\
// The lists of protocol/numerics/elementary: arithmetic.md section 6. Written by protocol/numerics/kernels/lists.py
// from the lists themselves; do not edit. Operations are those of scalar.h.
#pragma once
#include "scalar.h"

namespace assay {
namespace {
"""
TAIL = """
}  // namespace
}  // namespace assay
"""


class _Source:
    """Implements `Operations` with C++ expressions, such as names of variables, in place of numbers. Each
    operation writes one line of code.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __getattr__(self, operation: str) -> object:
        def call(*operands: str) -> str:
            name = f"v{len(self.lines)}"
            self.lines.append(f"    const auto {name} = op_{operation}({', '.join(operands)});")
            return name

        return call

    def f32(self, bits: int) -> str:
        return f"float_of(0x{bits:08x}u)"

    def i32(self, value: int) -> str:
        return f"int32_t({value})"

    def u32(self, value: int) -> str:
        return f"uint32_t({value}u)"


def source() -> str:
    """The text of native/lists.h."""
    parts = [HEAD]
    for name in FUNCTIONS:
        recording = _Source()
        result = getattr(elementary, name)(recording, "x")
        parts.append(f"\ninline float list_{name}(float x) {{")
        parts += ["\n" + line for line in recording.lines]
        parts.append(f"\n    return {result};\n}}\n")
    return "".join((*parts, TAIL))


if __name__ == "__main__":
    FILE.write_text(source())
