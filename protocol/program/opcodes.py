"""The opcodes of instructions (encoding.md section 3).

`primitives` defines what they do, except for `input`, `output` and `call`. `attributes` defines their
attribute bytes.
"""

from __future__ import annotations

import enum


class Op(enum.IntEnum):
    """An opcode of version 1."""

    INPUT = 0x0001
    CONSTANT = 0x0002
    OUTPUT = 0x0003
    CALL = 0x0004

    STRIDED = 0x0101
    CONCAT = 0x0102
    PAD = 0x0103
    GATHER = 0x0104

    ADD = 0x0201
    SUB = 0x0202
    MUL = 0x0203
    DIV = 0x0204
    MINIMUM = 0x0205
    MAXIMUM = 0x0206
    SQRT = 0x0207
    NEG = 0x0208
    ABS = 0x0209
    FLOOR = 0x020A
    RINT = 0x020B
    SCALE = 0x020C

    LT = 0x0301
    LE = 0x0302
    EQ = 0x0303
    SELECT = 0x0304

    AND = 0x0401
    OR = 0x0402
    XOR = 0x0403
    SHL = 0x0404
    SHR = 0x0405
    MULHI = 0x0406

    CAST = 0x0501
    BITS = 0x0502

    EXPONENT = 0x0601
    QUANTISE = 0x0602
    TO_FIXED = 0x0603
    ROUND_SCALED = 0x0604

    DOT = 0x0701
    SUM = 0x0702
    MAX = 0x0703
    ARGMAX = 0x0704
    SCATTER_SUM = 0x0705

    PREFIX_SUM = 0x0801

    PHILOX = 0x0901

    @property
    def label(self) -> str:
        """The name that encoding.md uses."""
        return self.name.lower()
