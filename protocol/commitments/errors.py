"""Errors of the commitments package. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError


class CommitmentError(AssayError):
    """Base of the errors that `protocol.commitments` defines."""


class ProofError(CommitmentError):
    """A proof does not verify, or a tree does not have the given node, index or size."""

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
    """A blob cannot be stored or read."""


class MissingBlob(BlobError):
    """The store holds no blob with this id."""


class CorruptBlob(BlobError):
    """The stored bytes do not hash to the blob's id."""


class BlobTooLarge(BlobError):
    """A blob exceeds the limit given to the store or to the call."""


class TooManyMaps(BlobError):
    """The process has no memory map left for a large blob."""


class CheckpointError(CommitmentError):
    """A checkpoint is malformed, or its roots do not match its bytes."""


class DigestError(CommitmentError):
    """A salt, thinning, chunk, step or list of segments is not valid for a digest."""
