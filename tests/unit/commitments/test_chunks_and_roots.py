"""Leaves of each tree: chunks of a tensor, 32-byte roots, encoded instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
import pytest

from protocol.commitments import (
    CHUNK,
    ProofError,
    Tree,
    chunk,
    chunk_count,
    chunk_length,
    constants_tree,
    program_tree,
    segment_tree,
    state_root,
    state_tree,
    step_tree,
    tensor_root,
    tensor_tree,
    trace_tree,
    verify_inclusion,
)
from tests.unit.commitments import reference

ROOTS = [sha256(bytes([i])).digest() for i in range(7)]


@pytest.mark.parametrize("nbytes", [1, 4, 1023, 1024, 1025, 2048, 2049, 5000, 300_000])
def test_a_tensors_leaves_are_its_chunks(nbytes: int) -> None:
    data = np.random.default_rng(nbytes).bytes(nbytes)
    pieces = [data[i : i + 1024] for i in range(0, nbytes, 1024)]
    tree = tensor_tree(data)
    assert tree.size == chunk_count(nbytes) == len(pieces)
    assert tree.root == tensor_root(data) == reference.mth(pieces)
    for index in {0, len(pieces) // 2, len(pieces) - 1}:
        opened = chunk(data, index)
        assert opened == pieces[index]
        assert chunk_length(nbytes, index) == len(opened)
        verify_inclusion(tree.root, tree.size, index, opened, tree.inclusion_path(index))


def test_an_array_and_its_bytes_have_one_root() -> None:
    array = np.arange(1000, dtype="<f4").reshape(10, 100)
    assert tensor_root(array.data) == tensor_root(array.tobytes())
    assert chunk(array.data, 3) == array.tobytes()[3 * CHUNK :]


@pytest.mark.parametrize("index", [-1, 2])
def test_a_chunk_beyond_the_tensor_is_refused(index: int) -> None:
    with pytest.raises(ProofError, match="expected 0 to 1"):
        chunk(bytes(1025), index)


def test_the_empty_tensor_is_refused() -> None:
    with pytest.raises(ProofError, match="at least 1 byte"):
        tensor_root(b"")


@pytest.mark.parametrize("build", [state_tree, step_tree, segment_tree, trace_tree, constants_tree])
def test_trees_above_tensors_have_the_roots_as_leaf_data(build: Callable[[Sequence[bytes]], Tree]) -> None:
    assert build(ROOTS).root == reference.mth(ROOTS)
    with pytest.raises(ProofError, match="expected 32 bytes, got 64 bytes"):
        build([*ROOTS, ROOTS[0].hex().encode()])
    with pytest.raises(ProofError, match="at least one"):
        build([])


def test_state_root_is_the_root_of_the_state_tree() -> None:
    assert state_root(ROOTS) == state_tree(ROOTS).root


def test_a_programs_leaves_are_its_encoded_instructions() -> None:
    instructions = [b"\x01" * n for n in (5, 9, 40)]
    assert program_tree(instructions).root == reference.mth(instructions)
