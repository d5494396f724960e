"""Tensors as trees of 1 KiB chunks (docs/spec/encoding.md sections 1 and 2, arithmetic.md section 7).

A tensor's leaf number i is bytes [1024 i, 1024 (i + 1)) of its canonical bytes (arithmetic.md section 1);
only the last leaf may be shorter. The program, not this tree, commits to shape and type. The caller makes the
bytes canonical.
"""

from __future__ import annotations

from protocol.commitments.errors import ProofError
from protocol.commitments.hashing import BytesLike
from protocol.commitments.merkle import Tree

CHUNK = 1024  # bytes; a judgment opens up to three chunks (dispute.md section 5), 256 four-byte elements each


def tensor_tree(data: BytesLike) -> Tree:
    """Tree over the chunks of a tensor's canonical bytes, which are C-contiguous. Raises ProofError if there
    are no bytes.
    """
    chunk_count(memoryview(data).nbytes)  # refuses the empty tensor
    return Tree.from_rows(data, CHUNK)


def tensor_root(data: BytesLike) -> bytes:
    """Root of `tensor_tree`: the 32 bytes that stand for the tensor's value."""
    return tensor_tree(data).root


def chunk_count(nbytes: int) -> int:
    """Number of chunks of a tensor of `nbytes` bytes. Raises ProofError if `nbytes` is less than 1."""
    if nbytes < 1:
        raise ProofError(
            "tensor size",
            expected="at least 1 byte",
            got=nbytes,
            remedy="drop zero-size tensors (arithmetic.md section 1)",
        )
    return -(-nbytes // CHUNK)


def chunk_length(nbytes: int, index: int) -> int:
    """Length in bytes of chunk `index` of a tensor of `nbytes` bytes: CHUNK, or less for the last chunk.
    Raises ProofError if the tensor has no such chunk.
    """
    count = chunk_count(nbytes)
    if not 0 <= index < count:
        raise ProofError(
            "chunk index", expected=f"0 to {count - 1}", got=index, remedy="name a chunk that the tensor has"
        )
    return min(CHUNK, nbytes - index * CHUNK)


def chunk(data: BytesLike, index: int) -> bytes:
    """Bytes of chunk `index` of a tensor's canonical bytes: the leaf data that an opening shows."""
    view = memoryview(data).cast("B")
    length = chunk_length(view.nbytes, index)
    return bytes(view[index * CHUNK : index * CHUNK + length])
