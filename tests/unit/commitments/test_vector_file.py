"""tests/vectors/trees.json is what its generator writes, and what the RFC's own recursion says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocol.commitments import (
    ProofError,
    fold_descendants,
    root_from_path,
    tensor_root,
    verify_consistency,
    verify_path,
)
from tests.unit.commitments import reference
from tests.vectors.generate_trees import FILE, build, tensor_data

VECTORS: dict[str, Any] = json.loads(FILE.read_text())
LEAVES = [bytes.fromhex(text[2:]) for text in VECTORS["leaves"]]


def rows(section: str) -> list[tuple[Any, ...]]:
    return list(zip(*VECTORS[section].values(), strict=True))


def raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def hashes(text: str) -> list[bytes]:
    data = raw(text)
    return [data[i : i + 32] for i in range(0, len(data), 32)]


def test_the_file_is_what_its_generator_writes() -> None:
    assert build() == VECTORS, "run `python -m tests.vectors.generate_trees` and review the difference"


def test_roots() -> None:
    assert [raw(root) for root in VECTORS["roots"]] == [
        reference.mth(LEAVES[: n + 1]) for n in range(len(LEAVES))
    ]


def test_paths() -> None:
    for tree_size, lo, size, node, path, root in rows("paths"):
        assert raw(node) == reference.mth(LEAVES[lo : lo + size])
        assert raw(root) == reference.mth(LEAVES[:tree_size])
        assert root_from_path(tree_size, lo, size, raw(node), hashes(path)) == raw(root)
        if size == 1:
            assert hashes(path) == reference.path(lo, LEAVES[:tree_size])


def test_refused_paths() -> None:
    for tree_size, lo, size, node, path, root in rows("refused_paths"):
        with pytest.raises(ProofError):
            verify_path(raw(root), tree_size, lo, size, raw(node), hashes(path))


def test_consistency() -> None:
    for old_size, new_size, old_root, new_root, proof in rows("consistency"):
        assert hashes(proof) == reference.proof(old_size, LEAVES[:new_size])
        verify_consistency(old_size, new_size, raw(old_root), raw(new_root), hashes(proof))


def test_refused_consistency() -> None:
    for old_size, new_size, old_root, new_root, proof in rows("refused_consistency"):
        with pytest.raises(ProofError):
            verify_consistency(old_size, new_size, raw(old_root), raw(new_root), hashes(proof))


def test_descendants() -> None:
    for size, node, children in rows("descendants"):
        assert fold_descendants(size, 4, hashes(children)) == raw(node)


def test_tensors() -> None:
    for nbytes, chunks, root in rows("tensors"):
        data = tensor_data(nbytes)
        pieces = [data[i : i + 1024] for i in range(0, nbytes, 1024)]
        assert len(pieces) == chunks
        assert tensor_root(data) == raw(root) == reference.mth(pieces)
