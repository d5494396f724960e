"""Chunks opened in step trees of a seat and of the solver: only the true chunk folds to the root."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import ProofError, Tree, state_root, step_tree, tensor_root, tensor_tree
from protocol.commitments.digests import Digester, index_of, leaf, seat_digest, segment_path, selected, turns
from protocol.commitments.errors import DigestError
from protocol.commitments.hashing import leaf_hash
from protocol.commitments.opened_chunks import Opening, fold, open_chunk_of
from protocol.commitments.proofs import root_from_path
from tests.unit.commitments.patterns import pattern

SALT = bytes(range(32))
SIZES = st.sampled_from([1, 31, 1023, 1024, 1025, 2048, 5000, 7 * 1024, 9 * 1024 - 1, 70_000])
THINNINGS = st.sampled_from([1, 2, 4, 64])


def made(sizes: list[int], steps: int) -> list[list[bytes]]:
    """Tensors of the states 0 … `steps`."""
    return [
        [pattern(nbytes, 100 * step + number) for number, nbytes in enumerate(sizes)]
        for step in range(steps + 1)
    ]


def opened(
    states: list[list[bytes]], digester: Digester | None, step: int, tensor: int, chunk: int
) -> tuple[Opening, bytes]:
    """Open a chunk, salted if there is a digester. Return the opening and the root of the step tree."""

    def root(data: bytes, number: int) -> bytes:
        return tensor_root(data) if digester is None else digester.tensor_root(data, number)

    roots = [[root(data, number) for data in state] for number, state in enumerate(states)]
    steps = [state_root(each) for each in roots]
    data = states[step][tensor]
    tree = tensor_tree(data) if digester is None else digester.tensor_tree(data, step)
    return open_chunk_of(tree, chunk, roots[step], tensor, steps, step), step_tree(steps).root


@given(
    sizes=st.lists(SIZES, min_size=1, max_size=5),
    steps=st.integers(1, 6),
    thinning=st.none() | THINNINGS,
    data=st.data(),
)
def test_an_opening_folds_to_the_root_and_no_other_byte_does(
    sizes: list[int], steps: int, thinning: int | None, data: st.DataObject
) -> None:
    states = made(sizes, steps)
    step, tensor = data.draw(st.integers(0, steps)), data.draw(st.integers(0, len(sizes) - 1))
    count = -(-sizes[tensor] // 1024)
    chunk = data.draw(st.integers(0, count - 1))
    digester = None if thinning is None else Digester(SALT, thinning)
    opening, root = opened(states, digester, step, tensor, chunk)
    assert opening.step_root(len(sizes), steps + 1) == root
    assert opening.place == (step, tensor, *turns(count, chunk))

    content = states[step][tensor][1024 * chunk : 1024 * chunk + 1024]
    hashed = thinning is None or (opening.place.turns + step) % thinning == 0
    due = (leaf_hash(content) if thinning is None else leaf(SALT, content)) if hashed else bytes(32)
    assert opening.leaf == due
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 1))] ^= 1
    other = leaf_hash(bytes(changed)) if thinning is None else leaf(SALT, bytes(changed))
    assert replace(opening, leaf=other).step_root(len(sizes), steps + 1) != root


@given(sizes=st.lists(SIZES, min_size=2, max_size=5), steps=st.integers(1, 6), data=st.data())
def test_no_other_place_folds_to_the_root(sizes: list[int], steps: int, data: st.DataObject) -> None:
    step, tensor = data.draw(st.integers(0, steps)), data.draw(st.integers(0, len(sizes) - 1))
    count = -(-sizes[tensor] // 1024)
    chunk = data.draw(st.integers(0, count - 1))
    opening, root = opened(made(sizes, steps), Digester(SALT, 1), step, tensor, chunk)
    for name, most in (("step", steps), ("tensor", len(sizes) - 1), ("turns", 2**opening.place.depth - 1)):
        other = data.draw(st.integers(0, most))
        moved = replace(opening, place=opening.place._replace(**{name: other}))
        try:
            found = moved.step_root(len(sizes), steps + 1)
        except ProofError:
            continue
        assert (found == root) == (moved.place == opening.place)


def test_a_path_of_another_length_and_turns_beyond_it_are_refused() -> None:
    opening, _ = opened(made([5000], 2), Digester(SALT, 2), 1, 0, 1)
    with pytest.raises(ProofError, match="path of the chunk: expected 3 hashes, got 2"):
        replace(opening, chunk_path=opening.chunk_path[:-1]).tensor_root()
    with pytest.raises(ProofError, match=r"turns: expected below 2\^3, got 8"):
        fold(opening.leaf, 8, opening.chunk_path)


def test_what_does_not_belong_together_is_not_opened() -> None:
    states, digester = made([5000, 1], 2), Digester(SALT, 1)
    roots = [[digester.tensor_root(data, step) for data in state] for step, state in enumerate(states)]
    steps = [state_root(each) for each in roots]
    tree = digester.tensor_tree(states[1][0], 1)
    open_chunk_of(tree, 2, roots[1], 0, steps, 1)
    for wrong in (
        (tree, 2, roots[0], 0, steps, 1),
        (tree, 2, roots[1], 1, steps, 1),
        (tree, 2, roots[1], 0, steps, 2),
        (digester.tensor_tree(states[1][1], 1), 0, roots[1], 0, steps, 1),
    ):
        with pytest.raises(ProofError, match="expected the step tree's root"):
            open_chunk_of(*wrong)


@given(nbytes=st.integers(1, 200 * 1024), thinning=THINNINGS, step=st.integers(0, 70))
def test_the_tree_of_a_tensor_has_its_root_and_the_selected_hashes(
    nbytes: int, thinning: int, step: int
) -> None:
    data, digester = pattern(nbytes, 1), Digester(SALT, thinning)
    tree, count = digester.tensor_tree(data, step), -(-nbytes // 1024)
    assert (tree.size, tree.root) == (count, digester.tensor_root(data, step))
    chosen = [index for indices in selected(count, step, thinning) for index in indices]
    assert chosen == [i for i in range(count) if (turns(count, i)[0] + step) % thinning == 0]
    assert chosen == [i for i in range(count) if tree.node(i, 1) != bytes(32)]


@given(count=st.integers(1, 1 << 20), data=st.data())
def test_turns_and_depth_name_one_leaf(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    assert index_of(count, *turns(count, index)) == index


@given(count=st.integers(1, 70))
def test_other_turns_and_depths_name_no_leaf(count: int) -> None:
    named = {turns(count, index) for index in range(count)}
    every = {(turned, depth) for depth in range(9) for turned in range(1 << depth)}
    assert {place for place in every if index_of(count, *place) is not None} == named


@given(segments=st.integers(1, 8), data=st.data())
def test_a_segment_is_in_its_seats_digest(segments: int, data: st.DataObject) -> None:
    roots, result = [bytes([number]) * 32 for number in range(segments)], b"\xff" * 32
    at = data.draw(st.integers(0, segments - 1))
    path = segment_path(roots, result, at)
    found = root_from_path(segments + 1, at, 1, leaf_hash(roots[at]), path)
    assert found == seat_digest(roots, result)


def test_a_looks_digest_is_over_one_segment_alone() -> None:
    root = b"\1" * 32
    assert seat_digest([root]) == Tree.from_leaves([root]).root == leaf_hash(root)
    assert segment_path([root], None, 0) == []
    with pytest.raises(DigestError, match="segments: expected one root, a look's, if there is no result"):
        seat_digest([root, root])
