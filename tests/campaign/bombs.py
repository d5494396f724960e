"""Bombs: small bodies that unpack to gigabytes, in content encodings of HTTP (RFC 9110, section 8.4.1). Each
bomb is made in pieces.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Literal, get_args

Encoding = Literal["gzip", "deflate", "zstd"]
ENCODINGS: Final[tuple[Encoding, ...]] = get_args(Encoding)

UNPACKED: Final = 1 << 31
"""Bytes that a bomb unpacks to."""
CHECKSUM: Final = 0x4DBDF21C
"""CRC-32 of `UNPACKED` zero bytes."""
PIECE: Final = 1 << 20
"""Zero bytes in a piece for gzip and deflate. A piece packs to 1 KiB, so a bomb is 2 MiB."""
BLOCK: Final = 1 << 17
"""Zero bytes in a zstd block, the maximum. A block packs to 4 bytes, so a bomb is 64 KiB."""
GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""The header of a gzip bomb (RFC 1952): deflate, without name and time."""
ZSTD_HEADER: Final = b"\x28\xb5\x2f\xfd\x00\x38"
"""The header of a zstd bomb (RFC 8878): the magic number; a descriptor that announces no length, no checksum
and no dictionary; and the size of the window, 2^17 bytes.
"""


def bomb(encoding: Encoding) -> Iterator[bytes]:
    """Yields the pieces of a bomb. The checksums of gzip and deflate are right."""
    return _BOMBS[encoding]()


def _gzip() -> Iterator[bytes]:
    yield GZIP_HEADER
    yield from _deflated(-zlib.MAX_WBITS)
    yield CHECKSUM.to_bytes(4, "little") + UNPACKED.to_bytes(4, "little")


def _deflate() -> Iterator[bytes]:
    """A bomb in HTTP's "deflate", which is the zlib format (RFC 1950). The checksum of n zero bytes has n
    modulo 65,521 in its upper half and 1 in its lower half.
    """
    yield b"\x78\x9c"
    yield from _deflated(-zlib.MAX_WBITS)
    yield ((UNPACKED % 65_521) << 16 | 1).to_bytes(4, "big")


def _deflated(bits: int) -> Iterator[bytes]:
    """`UNPACKED` zero bytes, deflated. A full flush resets the compressor, so each piece packs to the same
    bytes.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    piece = packer.compress(bytes(PIECE)) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(UNPACKED // PIECE):
        yield piece
    yield zlib.compressobj(9, zlib.DEFLATED, bits).flush()


def _zstd() -> Iterator[bytes]:
    """A bomb in zstd, made of RLE blocks: each is a byte and its repeat count."""
    yield ZSTD_HEADER
    block = (BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    for _ in range(UNPACKED // BLOCK // 256 - 1):
        yield block * 256
    yield block * 255 + (BLOCK << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"


_BOMBS: Final[dict[Encoding, Callable[[], Iterator[bytes]]]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
