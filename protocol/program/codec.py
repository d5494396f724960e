"""Reads and writes the integers that encoding.md calls structure integers: lengths, opcodes, shapes and
attributes. They are big-endian.

A number out of range, a missing byte and a trailing byte raise `EncodingError`. `types`, `instruction` and
`program` define the meaning of the integers.
"""

from __future__ import annotations

from protocol.program.errors import EncodingError


def u8(value: int) -> bytes:
    """One byte; raises `EncodingError` outside 0 … 255."""
    return _unsigned(value, 1)


def u16(value: int) -> bytes:
    """Two bytes, big-endian; raises `EncodingError` outside the range."""
    return _unsigned(value, 2)


def u32(value: int) -> bytes:
    """Four bytes, big-endian; raises `EncodingError` outside the range."""
    return _unsigned(value, 4)


def i64(value: int) -> bytes:
    """Eight bytes, big-endian two's complement; raises `EncodingError` outside the range."""
    if not -(2**63) <= value < 2**63:
        raise EncodingError("an integer of 64 bits", str(value))
    return value.to_bytes(8, "big", signed=True)


def _unsigned(value: int, size: int) -> bytes:
    if not 0 <= value < 1 << (8 * size):
        raise EncodingError(f"an integer from 0 to {(1 << (8 * size)) - 1}", str(value))
    return value.to_bytes(size, "big")


class Reader:
    """Reads numbers from the front of a byte string; raises `EncodingError` for a wrong length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        end = self._at + count
        if end > len(self._data):
            raise EncodingError(f"{count} more bytes at offset {self._at}", f"{len(self._data) - self._at}")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def rest(self) -> bytes:
        """All bytes not yet taken."""
        return self.take(len(self._data) - self._at)

    def u8(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Two bytes, big-endian."""
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        """Four bytes, big-endian."""
        return int.from_bytes(self.take(4), "big")

    def i64(self) -> int:
        """Eight bytes, big-endian two's complement."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def end(self) -> None:
        """Raise `EncodingError` unless all bytes were taken."""
        left = len(self._data) - self._at
        if left:
            raise EncodingError("no further bytes", f"{left} trailing bytes")
