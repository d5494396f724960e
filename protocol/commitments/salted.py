"""Salted hashes of chunks: every SHA-256 block that holds data also holds the salt (audit.md section 4).

So computing the hash needs both chunk and salt: neither a hash of the chunk nor an intermediate SHA-256 state is
enough. `digests.py` arranges these hashes in trees.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from protocol.commitments.chunks import CHUNK
from protocol.commitments.errors import DigestError
from protocol.commitments.hashing import HASH_BYTES
from protocol.commitments.native import salted_row_hasher

PIECE = 32
"""Bytes of a chunk in one block; the salt takes the block's other half."""
_BATCH_ROWS = 128
"""Rows hashed at a time. Their messages take 264 KiB, which stays in a core's second-level cache between the copy and
the hash.
"""


def leaf(salt: bytes, chunk: bytes) -> bytes:
    """Hash of one chunk of 1 to 1,024 bytes under a 32-byte salt. Raises DigestError for other lengths."""
    require_salt(salt)
    if not 1 <= len(chunk) <= CHUNK:
        raise DigestError(
            "chunk", expected=f"1 to {CHUNK} bytes", got=len(chunk), remedy="cut the tensor into its chunks"
        )
    padded = chunk + bytes(-len(chunk) % PIECE)
    pieces = [padded[i : i + PIECE] for i in range(0, len(padded), PIECE)]
    return sha256(salt + salt.join([*pieces, len(chunk).to_bytes(HASH_BYTES, "big")])).digest()


def require_salt(salt: bytes) -> None:
    """Raise DigestError unless a salt has 32 bytes. The error does not contain the salt."""
    if len(salt) != HASH_BYTES:
        raise DigestError(
            "salt",
            expected=f"{HASH_BYTES} bytes",
            got=f"{len(salt)} bytes",
            remedy="derive it with `seat_salt` of protocol.dispute.keys",
        )


def hash_rows(salt: bytes, rows: NDArray[np.uint8]) -> bytes:
    """`leaf` of every row of a `[count, 1024]` array; `count * 32` bytes in row order.

    The bytes of a row must be contiguous; there may be gaps between rows.
    """
    compiled = salted_row_hasher()
    return compiled(salt, rows) if compiled is not None else hash_rows_by_hashlib(salt, rows)


def hash_rows_by_hashlib(salt: bytes, rows: NDArray[np.uint8]) -> bytes:
    """`hash_rows` without compiled code."""
    count, width = rows.shape
    pieces = width // PIECE
    batch = min(count, _BATCH_ROWS)
    # Each block is salt and piece; the last is salt and length.
    scratch = np.empty((batch, pieces + 1, 2, PIECE), np.uint8)
    scratch[:, :, 0] = np.frombuffer(salt, np.uint8)
    scratch[:, pieces, 1] = np.frombuffer(width.to_bytes(PIECE, "big"), np.uint8)
    flat, stride = scratch.reshape(-1).data, 2 * PIECE * (pieces + 1)
    views = [flat[i * stride : (i + 1) * stride] for i in range(batch)]
    digests: list[bytes] = []
    for start in range(0, count, _BATCH_ROWS):
        used = min(batch, count - start)
        scratch[:used, :pieces, 1] = rows[start : start + used].reshape(used, pieces, PIECE)
        digests.append(b"".join([h.digest() for h in map(sha256, views[:used])]))
    return b"".join(digests)
