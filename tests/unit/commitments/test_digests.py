"""Digests of states: the place of each leaf, what a digest depends on, and refused input."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.commitments import ProofError, Tree, geometry, state_root
from protocol.commitments.chunks import CHUNK
from protocol.commitments.digests import MAX_THINNING, Digester, blocks, leaf, seat_digest, turns
from protocol.commitments.errors import DigestError
from protocol.commitments.hashing import hash_rows as hash_node_rows
from protocol.commitments.hashing import node_hash
from protocol.commitments.salted import hash_rows, hash_rows_by_hashlib
from tests.unit.commitments.patterns import pattern

SALT, OTHER = bytes(range(32)), bytes(range(1, 33))
SIZES = st.integers(1, 300 * 1024) | st.integers(1, 300).map(lambda chunks: 1024 * chunks)
THINNINGS = st.sampled_from([1, 2, 4, 8, 16, 32, 64])
STEPS = st.integers(0, 200)


def selected(count: int, index: int, thinning: int, step: int) -> bool:
    return (turns(count, index)[0] + step) % thinning == 0


def naive(salt: bytes, thinning: int, data: bytes, step: int) -> Tree:
    """The digest's tree over all chunks. Leaves of chunks that are not selected are zeros."""
    chunks = [data[i : i + 1024] for i in range(0, len(data), 1024)]
    return Tree.from_leaf_hashes(
        b"".join(
            leaf(salt, chunk) if selected(len(chunks), i, thinning, step) else bytes(32)
            for i, chunk in enumerate(chunks)
        )
    )


def folded(node: bytes, path: list[bytes], turned: int) -> bytes:
    """The root that follows from a leaf hash and its path. The leaf's turns, `turned`, say on which side each
    sibling is. As in answers to accusations, the tree's size is not needed.
    """
    for i, sibling in enumerate(path):
        node = node_hash(sibling, node) if turned >> i & 1 else node_hash(node, sibling)
    return node


@given(count=st.integers(1, 1 << 20), data=st.data())
def test_turns_are_the_sides_of_the_siblings(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    siblings = geometry.siblings(count, index, 1)
    due = sum(1 << i for i, (lo, _) in enumerate(siblings) if lo < index)
    assert turns(count, index) == (due, len(siblings))


@pytest.mark.parametrize("height", range(8))
def test_in_a_perfect_tree_turns_are_the_index(height: int) -> None:
    assert [turns(1 << height, i) for i in range(1 << height)] == [(i, height) for i in range(1 << height)]


@given(count=st.integers(1, 1 << 30))
def test_blocks_are_nodes_that_cover_every_leaf_once(count: int) -> None:
    found = list(blocks(count))
    assert [block.first for block in found] == [
        sum(1 << block.height for block in found[:i]) for i in range(len(found))
    ]
    assert sum(1 << block.height for block in found) == count
    assert len(found) == count.bit_count()
    for block in found:
        assert len(geometry.siblings(count, block.first, 1 << block.height)) == block.depth - block.height


@given(count=st.integers(1, 300), data=st.data())
def test_turns_fold_inclusion_paths_to_the_root(count: int, data: st.DataObject) -> None:
    tree = Tree.from_leaves([i.to_bytes(4, "big") for i in range(count)])
    index = data.draw(st.integers(0, count - 1))
    turned, depth = turns(count, index)
    path = tree.inclusion_path(index)
    assert len(path) == depth
    assert folded(tree.node(index, 1), path, turned) == tree.root


@given(nbytes=SIZES, thinning=THINNINGS, step=STEPS, seed=st.integers(0, 3))
def test_a_thinned_root_is_that_of_the_tree_with_all_leaves(
    nbytes: int, thinning: int, step: int, seed: int
) -> None:
    data = pattern(nbytes, seed)
    assert Digester(SALT, thinning).tensor_root(data, step) == naive(SALT, thinning, data, step).root


@given(count=st.integers(1, 200), thinning=THINNINGS, steps=st.integers(64, 80))
def test_every_chunk_is_selected_once_in_as_many_states_as_the_thinning(
    count: int, thinning: int, steps: int
) -> None:
    for index in range(count):
        states = [step for step in range(steps) if selected(count, index, thinning, step)]
        assert len(states) >= steps // thinning
        assert {later - earlier for earlier, later in pairwise(states)} <= {thinning}


@given(nbytes=SIZES, thinning=THINNINGS, step=STEPS, data=st.data())
def test_a_root_changes_with_the_bits_that_are_selected_and_no_others(
    nbytes: int, thinning: int, step: int, data: st.DataObject
) -> None:
    digester = Digester(SALT, thinning)
    changed = bytearray(pattern(nbytes))
    root = digester.tensor_root(changed, step)
    place = data.draw(st.integers(0, nbytes - 1))
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    matters = selected(-(-nbytes // 1024), place // 1024, thinning, step)
    assert (digester.tensor_root(changed, step) != root) == matters


@given(nbytes=SIZES, thinning=THINNINGS, step=STEPS, other=STEPS)
def test_a_root_of_a_whole_tensor_depends_on_salt_and_step(
    nbytes: int, thinning: int, step: int, other: int
) -> None:
    assume(nbytes > 1024 * MAX_THINNING)  # so that every step selects a chunk
    digester, data = Digester(SALT, thinning), pattern(nbytes)
    root = digester.tensor_root(data, step)
    assert Digester(OTHER, thinning).tensor_root(data, step) != root
    assert (digester.tensor_root(data, other) == root) == ((step - other) % thinning == 0)


@given(chunk=st.binary(min_size=1, max_size=1024), other=st.binary(min_size=1, max_size=1024))
def test_leaves_differ_where_chunks_do(chunk: bytes, other: bytes) -> None:
    assert (leaf(SALT, chunk) == leaf(SALT, other)) == (chunk == other)
    assert leaf(OTHER, chunk) != leaf(SALT, chunk)


@pytest.mark.parametrize("nbytes", [1, 31, 32, 33, 1023])
def test_zeros_behind_a_chunk_are_no_part_of_it(nbytes: int) -> None:
    assert leaf(SALT, bytes(nbytes)) != leaf(SALT, bytes(nbytes + 1))


def test_a_state_is_a_tree_over_its_tensors() -> None:
    digester = Digester(SALT, 4)
    tensors = [pattern(nbytes, nbytes) for nbytes in (4, 9 * 1024, 70_000)]
    assert digester.state_root(tensors, 3) == state_root([digester.tensor_root(data, 3) for data in tensors])
    assert digester.state_root(tensors[::-1], 3) != digester.state_root(tensors, 3)


@pytest.mark.parametrize("given_as", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(given_as: type) -> None:
    data = pattern(5000)
    assert Digester(SALT, 2).tensor_root(given_as(data), 1) == naive(SALT, 2, data, 1).root


@pytest.mark.parametrize(("chosen", "calls"), [(8, 0), (32, 1)])
def test_many_hashes_beside_zeros_are_computed_in_one_call(
    chosen: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def counting(prefix: int, rows: NDArray[np.uint8]) -> bytes:
        counted.append(len(rows))
        return hash_node_rows(prefix, rows)

    monkeypatch.setattr("protocol.commitments.digests.hashing.hash_rows", counting)
    data = pattern(2 * chosen * CHUNK)
    assert Digester(SALT, 2).tensor_root(data, 0) == naive(SALT, 2, data, 0).root
    assert counted == [chosen] * calls


def test_a_seats_digest_is_a_tree_over_segments_and_result() -> None:
    first, second, result = (bytes([i]) * 32 for i in range(3))
    assert seat_digest([first, second], result) == Tree.from_leaves([first, second, result]).root
    assert (
        len({seat_digest(list(s), r) for s, r in (((first, second), result), ((second, first), result))}) == 2
    )
    assert seat_digest([first], second) != seat_digest([second], first)


@given(count=st.integers(0, 300), stride=st.integers(1, 9), seed=st.integers(0, 3))
def test_rows_have_the_hashes_of_their_chunks(count: int, stride: int, seed: int) -> None:
    rows = np.frombuffer(pattern(1024 * count, seed), np.uint8).reshape(count, 1024)[::stride]
    due = b"".join(leaf(SALT, row.tobytes()) for row in rows)
    assert hash_rows(SALT, rows) == hash_rows_by_hashlib(SALT, rows) == due


@pytest.mark.parametrize("thinning", [-1, 0, 3, 65, 128])
def test_a_thinning_that_terms_cannot_have_is_refused(thinning: int) -> None:
    with pytest.raises(DigestError, match="thinning: expected a power of two, 1 to 64"):
        Digester(SALT, thinning)


@pytest.mark.parametrize("salt", [b"", SALT[:-1], SALT + b"\0"])
def test_a_salt_of_another_length_is_refused_and_not_shown(salt: bytes) -> None:
    for use in (lambda: Digester(salt, 1), lambda: leaf(salt, b"x")):
        with pytest.raises(DigestError, match=f"salt: expected 32 bytes, got {len(salt)} bytes"):
            use()
    assert "salt" not in repr(Digester(SALT, 1))
    assert "salt" not in repr(replace(Digester(SALT, 1), thinning=2))


def test_other_wrong_input_is_refused() -> None:
    digester = Digester(SALT, 1)
    for chunk in (b"", bytes(1025)):
        with pytest.raises(DigestError, match="chunk: expected 1 to 1024 bytes"):
            leaf(SALT, chunk)
    with pytest.raises(DigestError, match="step: expected at least 0"):
        digester.tensor_root(b"x", -1)
    with pytest.raises(ProofError, match="tensor size"):
        digester.tensor_root(b"", 0)
    with pytest.raises(ProofError, match="tensor root"):
        digester.state_root([], 0)
    for count, index in ((0, 0), (5, 5), (5, -1)):
        with pytest.raises(DigestError, match=f"leaf: expected an index below {count}"):
            turns(count, index)
    with pytest.raises(DigestError, match="segments: expected at least one root"):
        seat_digest([], bytes(32))
    for segments, result in (([b"x"], bytes(32)), ([bytes(32)], bytes(31))):
        with pytest.raises(ProofError, match="digest's leaf: expected 32 bytes"):
            seat_digest(segments, result)
