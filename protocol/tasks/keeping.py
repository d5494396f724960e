"""The disk space and the time that a task's checkpoints take from its solver
(`protocol.commitments.checkpoints`). Pure.

A checkpoint is one file for each tensor of the state, and a manifest. All files of a checkpoint must reach
the disk before it counts as kept. So for a state of many small tensors, a checkpoint takes far more space and
time than its bytes alone.
"""

from __future__ import annotations

from typing import Final

from protocol.tasks.task import Terms

FILE: Final = 1 << 14
"""Bytes of disk that a file takes in addition to its own bytes. On most file systems, a file's last block
takes 4 KiB. But ext4 has only one inode for each 16 KiB of disk, so smaller files use up the inodes before
the space.
"""
ENTRY: Final = 512
"""Bytes of a tensor's entry in the manifest: two hashes, a name of at most 200 characters, a type and a shape."""


def checkpoint_bytes(terms: Terms) -> int:
    """The most bytes of disk that one checkpoint can take."""
    return terms.state_bytes + terms.state_tensors * (FILE + ENTRY) + FILE


def files(terms: Terms) -> int:
    """The most files that all K + 1 checkpoints together can have."""
    return files_of(terms.segments, terms.state_tensors)


def files_of(segments: int, state_tensors: int) -> int:
    """`files` for a task that has no terms yet."""
    return (segments + 1) * (state_tensors + 1)
