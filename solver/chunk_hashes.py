"""Hashes of the chunks of stored tensors. With them, a range of a tensor is read and checked without reading
the rest.

A blob is named by the hash of all its bytes, so the first request for a range requires reading the whole
tensor. From then on, the hashes of the tensor's chunks are kept; they take 1/32 of the tensor's size. Every
later range is checked against them, so damage that the disk suffers in the meantime is noticed.
"""

from __future__ import annotations

from collections import OrderedDict

from protocol.commitments import CHUNK, BlobStore
from protocol.commitments.checkpoints import Stored, load_tensor
from protocol.commitments.errors import CorruptBlob
from protocol.commitments.hashing import HASH_BYTES, leaf_hashes

MOST = 1 << 25
"""Limit on the bytes of all kept hashes: enough for 1 GiB of tensors."""


class ChunkHashes:
    """Chunk hashes of the most recently requested blobs, at most `most` bytes of hashes in all. If the hashes
    of the last requested blob alone take more, they alone are kept. Used by one thread at a time.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def read(self, store: BlobStore, stored: Stored, lo: int, hi: int) -> bytes:
        """Chunks lo … hi - 1 of a tensor; the tensor must have them. Raises the errors of `load_tensor`,
        and OSError.
        """
        hashes = self._kept.get(stored.blob)
        if hashes is None:
            data = load_tensor(store, stored).data
            self._keep(stored.blob, leaf_hashes(data, CHUNK))
            return bytes(memoryview(data)[lo * CHUNK : hi * CHUNK])
        self._kept.move_to_end(stored.blob)
        part = store.part(stored.blob, lo * CHUNK, hi * CHUNK)
        if leaf_hashes(part, CHUNK) != hashes[lo * HASH_BYTES : hi * HASH_BYTES]:
            raise CorruptBlob(
                f"corrupt blob {stored.blob}",
                expected=f"chunks {lo} to {hi - 1} as they were read before",
                got="others",
                remedy="delete this file and fetch or store the blob again",
            )
        return part

    def forget(self) -> None:
        """Release all hashes."""
        self._kept.clear()
        self._taken = 0

    def _keep(self, blob: str, hashes: bytes) -> None:
        self._kept[blob] = hashes
        self._taken += len(hashes)
        while self._taken > self._most and len(self._kept) > 1:
            self._taken -= len(self._kept.popitem(last=False)[1])
