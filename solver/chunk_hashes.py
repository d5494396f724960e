"""Hashes of the chunks of stored tensors, so that a range of one is read and checked without the rest of it.

A blob is named by the hash of all its bytes, so the first range needs the whole tensor. Its chunks' hashes, a 32nd of
its bytes, are kept from then on, and every later range is checked against them, so later damage on the disk is
noticed.
"""

from __future__ import annotations

from collections import OrderedDict

from protocol.commitments import CHUNK, BlobStore
from protocol.commitments.checkpoints import Stored, load_tensor
from protocol.commitments.errors import CorruptBlob
from protocol.commitments.hashing import HASH_BYTES, leaf_hashes

MOST = 1 << 25
"""Bytes of hashes in all: enough for tensors of 1 GiB."""


class ChunkHashes:
    """Hashes of the blobs that were asked for last, at most `most` bytes or those of a single larger one. For one
    thread at a time.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def read(self, store: BlobStore, stored: Stored, lo: int, hi: int) -> bytes:
        """Chunks lo … hi - 1 of a tensor, which must exist. Raises as `load_tensor` does, and OSError."""
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
        """Release everything."""
        self._kept.clear()
        self._taken = 0

    def _keep(self, blob: str, hashes: bytes) -> None:
        self._kept[blob] = hashes
        self._taken += len(hashes)
        while self._taken > self._most and len(self._kept) > 1:
            self._taken -= len(self._kept.popitem(last=False)[1])
