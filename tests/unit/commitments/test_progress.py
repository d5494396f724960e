"""The growing segment tree: every prefix has the root of its own tree and a proof to every later prefix."""

from __future__ import annotations

from hashlib import sha256

import pytest

from protocol.commitments import ProgressTree, ProofError, segment_tree, verify_consistency, verify_inclusion

ROOTS = [sha256(bytes([i])).digest() for i in range(40)]


def test_every_committed_size_keeps_its_root_and_its_proofs() -> None:
    progress = ProgressTree()
    committed: list[bytes] = []
    for size, root in enumerate(ROOTS, start=1):
        progress.append(root)
        assert progress.size == size
        assert progress.root == segment_tree(ROOTS[:size]).root
        committed.append(progress.root)
        for old in range(1, size + 1):
            verify_consistency(old, size, committed[old - 1], progress.root, progress.consistency_proof(old))
    for size in range(1, len(ROOTS) + 1):
        past = progress.at(size)
        assert past.root == committed[size - 1]
        for index in range(size):
            verify_inclusion(past.root, size, index, ROOTS[index], past.inclusion_path(index))


def test_it_can_be_rebuilt_from_stored_roots() -> None:
    assert ProgressTree(ROOTS[:13]).root == segment_tree(ROOTS[:13]).root
    assert ProgressTree().root == sha256(b"").digest()


@pytest.mark.parametrize("size", [-1, 14])
def test_a_size_never_reached_is_refused(size: int) -> None:
    with pytest.raises(ProofError, match="expected 0 to 13"):
        ProgressTree(ROOTS[:13]).at(size)


@pytest.mark.parametrize("old", [0, 14])
def test_no_proof_from_a_size_never_committed(old: int) -> None:
    with pytest.raises(ProofError):
        ProgressTree(ROOTS[:13]).consistency_proof(old)


def test_a_root_of_the_wrong_length_changes_nothing() -> None:
    progress = ProgressTree(ROOTS[:3])
    with pytest.raises(ProofError, match="expected 32 bytes, got 31 bytes"):
        progress.append(bytes(31))
    assert progress.root == segment_tree(ROOTS[:3]).root
