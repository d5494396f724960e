"""Attribute bytes of instructions: one encoder and one strict decoder per form (encoding.md section 3,
table).

A decoder raises `EncodingError` for a wrong length. `primitives` checks ranges that depend on operand types.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.program import codec
from protocol.program.codec import Reader
from protocol.program.errors import EncodingError

PROGRAM_ID_BYTES = 32


def decode_nothing(attributes: bytes) -> None:
    """Raise `EncodingError` unless `attributes` is empty. For primitives without attributes."""
    Reader(attributes).end()


def encode_index(k: int) -> bytes:
    """Attributes that are one number k. For `input` and `output`, k is the number of the frame's input or
    output. For `philox`, k is the stream. For `scatter_sum`, k is R, the number of rows.
    """
    return codec.u32(k)


def decode_index(attributes: bytes) -> int:
    """Inverse of `encode_index`."""
    reader = Reader(attributes)
    k = reader.u32()
    reader.end()
    return k


def encode_byte(value: int) -> bytes:
    """Attributes that are one byte. For `concat`, `value` is the axis. For `quantise`, `to_fixed` and
    `round_scaled`, `value` is the p in the table of encoding.md section 3.
    """
    return codec.u8(value)


def decode_byte(attributes: bytes) -> int:
    """Inverse of `encode_byte`."""
    reader = Reader(attributes)
    value = reader.u8()
    reader.end()
    return value


def decode_literal(attributes: bytes, itemsize: int) -> bytes:
    """The literal of a `constant`: the canonical little-endian bytes of one element."""
    if len(attributes) != itemsize:
        raise EncodingError(f"a literal of {itemsize} bytes", f"{len(attributes)}")
    return attributes


def decode_program_id(attributes: bytes) -> bytes:
    """The program id of the callee of a `call`."""
    if len(attributes) != PROGRAM_ID_BYTES:
        raise EncodingError(f"a program id of {PROGRAM_ID_BYTES} bytes", f"{len(attributes)}")
    return attributes


def encode_strided(offset: int, strides: Sequence[int]) -> bytes:
    """Attributes of `strided`: a flat offset, and a stride for each axis of the result, all in elements of
    the operand.
    """
    return codec.i64(offset) + b"".join(map(codec.i64, strides))


def decode_strided(attributes: bytes, rank: int) -> tuple[int, tuple[int, ...]]:
    """Inverse of `encode_strided` for a result of this rank."""
    reader = Reader(attributes)
    offset = reader.i64()
    strides = tuple(reader.i64() for _ in range(rank))
    reader.end()
    return offset, strides


def encode_pad(low: Sequence[int], literal: bytes) -> bytes:
    """Attributes of `pad`: for each axis, the number of elements before the operand; then the fill element."""
    return b"".join(map(codec.u32, low)) + literal


def decode_pad(attributes: bytes, rank: int, itemsize: int) -> tuple[tuple[int, ...], bytes]:
    """Inverse of `encode_pad` for this rank and element size."""
    reader = Reader(attributes)
    low = tuple(reader.u32() for _ in range(rank))
    literal = reader.take(itemsize)
    reader.end()
    return low, literal
