"""Translates the operation lists of `numerics.elementary`, one list per function, to Triton code.

`python -m protocol.numerics.cuda.generate` writes device/lists.py, with one statement per operation, in
order. `kernels.lists` does the same for C++. A test checks that the file is up to date.
"""

from __future__ import annotations

import struct
from pathlib import Path

from protocol.numerics import elementary

FILE = Path(__file__).parent / "device" / "lists.py"
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")

HEAD = '''\
"""The lists of protocol/numerics/elementary in Triton: arithmetic.md section 6.

Written by protocol/numerics/cuda/generate.py from the lists themselves; do not edit. Operations are those of `scalar`.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

import triton

from protocol.numerics.cuda.device.scalar import *
'''
SAME_BITS = {
    "bits_i32": "bits_of",
    "bits_u32": "bits_of",
    "from_bits_i32": "from_bits",
    "from_bits_u32": "from_bits",
}
ON_BITS = {"and_u32": "op_and_i32", "or_u32": "op_or_i32", "select_i32": "op_select", "eq_i32": "op_eq"}
"""Operations whose Triton function is named after another type: u32 is held in i32 here, and `op_select`
and `op_eq` accept any type."""


class _Source:
    """An implementation of `Operations` whose values are names of variables. Each operation appends one line
    of code.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __getattr__(self, operation: str) -> object:
        function = {**SAME_BITS, **ON_BITS}.get(operation, f"op_{operation}")

        def call(*operands: str) -> str:
            name = f"v{len(self.lines)}"
            self.lines.append(f"    {name} = {function}({', '.join(operands)})")
            return name

        return call

    def f32(self, bits: int) -> str:
        value = struct.unpack("<f", struct.pack("<I", bits))[0]
        return repr(value) if abs(value) < float("inf") else f'float("{value}")'

    def i32(self, value: int) -> str:
        return str(value)

    def u32(self, value: int) -> str:
        return str(value if value < 1 << 31 else value - (1 << 32))


def source() -> str:
    """The text of device/lists.py."""
    parts = [HEAD]
    for name in FUNCTIONS:
        recording = _Source()
        result = getattr(elementary, name)(recording, "x")
        parts.append(f"\n\n@triton.jit\ndef list_{name}(x):\n")
        parts += [f"{line}\n" for line in recording.lines]
        parts.append(f"    return {result}\n")
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(source())
