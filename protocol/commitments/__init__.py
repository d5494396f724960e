"""The Merkle trees, roots and checkpoints that parties commit to (docs/spec/encoding.md sections 1 and 2).

Pure: `hashing` and `salted`, `native` (the compiled code of these two), `geometry`, `merkle`, `proofs`,
`chunks`, `groups`, `roots`, `progress`, `digests`, `opened_chunks`, `walks`. A state in memory: `states`,
`tensors`. On disk: `store`, `mapping`, `checkpoints`, `atomic`. `threads` runs a function over many items on
several threads. Nothing here imports torch; bytes and numpy arrays go in and out. Only `checkpoints` and
`store` need more than numpy.
"""

from protocol.commitments.chunks import CHUNK, chunk, chunk_count, chunk_length, tensor_root, tensor_tree
from protocol.commitments.errors import (
    BlobError,
    BlobTooLarge,
    CheckpointError,
    CommitmentError,
    CorruptBlob,
    MissingBlob,
    ProofError,
)
from protocol.commitments.hashing import BytesLike, leaf_hash, node_hash
from protocol.commitments.merkle import Tree
from protocol.commitments.progress import ProgressTree
from protocol.commitments.proofs import (
    fold_descendants,
    root_from_path,
    verify_consistency,
    verify_inclusion,
    verify_path,
)
from protocol.commitments.roots import (
    constants_tree,
    program_tree,
    segment_tree,
    state_root,
    state_tree,
    step_tree,
    trace_tree,
)
from protocol.commitments.store import BlobStore

__all__ = [
    "CHUNK",
    "BlobError",
    "BlobStore",
    "BlobTooLarge",
    "BytesLike",
    "CheckpointError",
    "CommitmentError",
    "CorruptBlob",
    "MissingBlob",
    "ProgressTree",
    "ProofError",
    "Tree",
    "chunk",
    "chunk_count",
    "chunk_length",
    "constants_tree",
    "fold_descendants",
    "leaf_hash",
    "node_hash",
    "program_tree",
    "root_from_path",
    "segment_tree",
    "state_root",
    "state_tree",
    "step_tree",
    "tensor_root",
    "tensor_tree",
    "trace_tree",
    "verify_consistency",
    "verify_inclusion",
    "verify_path",
]
