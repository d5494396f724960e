"""Errors of the commitments package.

    CommitmentError
    ├── ProofError          a proof, or a question about a tree, does not fit the tree's size or root
    ├── BlobError           a stored blob
    │   ├── MissingBlob     no blob of that id
    │   ├── CorruptBlob     bytes that do not hash to the id
    │   └── BlobTooLarge    more bytes than the limit
    └── CheckpointError     a manifest or tensor that is not a well-formed checkpoint

Each message says what was expected, what came and what to do.
"""

from __future__ import annotations


class CommitmentError(Exception):
    """Base of every error raised by `protocol.commitments`. `expected`, `got`, `remedy` are for display."""

    def __init__(self, what: str, *, expected: object, got: object, remedy: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}; {remedy}")
        self.expected = expected
        self.got = got
        self.remedy = remedy


class ProofError(CommitmentError):
    """A proof that does not verify, or a node, index or size that the tree does not have."""

    def __init__(
        self,
        what: str,
        *,
        expected: object,
        got: object,
        remedy: str = "ask its sender for a proof of exactly this size, or treat the sender as dishonest",
    ) -> None:
        super().__init__(what, expected=expected, got=got, remedy=remedy)


class BlobError(CommitmentError):
    """A blob that cannot be stored or read."""


class MissingBlob(BlobError):
    """The store holds no blob of this id."""


class CorruptBlob(BlobError):
    """The stored bytes do not hash to the blob's id."""


class BlobTooLarge(BlobError):
    """A blob exceeds the limit given to the store or to the call."""


class CheckpointError(CommitmentError):
    """A checkpoint that is malformed, or whose roots do not match its bytes."""
