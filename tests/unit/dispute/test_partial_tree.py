"""Descent to the first differing leaf: all trees up to 9 leaves, and larger ones by hypothesis."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import ProofError, Tree, verify_path
from protocol.commitments.geometry import siblings
from protocol.dispute.partial_tree import PartialTree


def leaves(size: int, wrong: frozenset[int]) -> list[bytes]:
    """32-byte leaves. Those in `wrong` differ from the honest leaves."""
    return [bytes([index % 256, index // 256, index in wrong]) + bytes(29) for index in range(size)]


def walk(own: Tree, theirs: Tree, data: list[bytes]) -> tuple[PartialTree, int, int]:
    """Demand nodes until the data of the first differing leaf is known.

    Return the tree, the leaf's number and the number of demands.
    """
    known = PartialTree(theirs.root, theirs.size, own)
    demands = 0
    while True:
        node = known.first_difference()
        assert node is not None
        lo, size = node
        verify_path(theirs.root, theirs.size, lo, size, known.hash(node), known.path(lo, size))
        if size == 1 and known.data(lo) is not None:
            return known, lo, demands
        demands += 1
        if size == 1:
            known.learn_leaf(lo, data[lo])
        else:
            known.learn_descendants(node, theirs.descendants(lo, size))


@pytest.mark.parametrize("size", range(1, 20))
def test_a_path_beside_a_leaf_leads_to_a_node_that_the_leaf_names(size: int) -> None:
    tree = Tree.from_leaves(leaves(size, frozenset()))
    known = PartialTree(tree.root, size, tree)
    for anchor, leaf in combinations(range(size), 2):
        for i, j in ((anchor, leaf), (leaf, anchor)):
            beside, whole = known.path_beside(j, i), known.path(j)
            assert beside == whole[: len(beside)]
            lo, width = siblings(size, j, 1)[len(beside)]
            assert lo <= i < lo + width
            assert known.path(i)[len(known.path_beside(i, j)) + 1 :] == whole[len(beside) + 1 :]
    assert known.path_beside(size - 1, size - 1) == []


@pytest.mark.parametrize("size", range(1, 10))
def test_every_set_of_wrong_leaves_is_walked_to_its_first(size: int) -> None:
    own = Tree.from_leaves(leaves(size, frozenset()))
    for count in range(1, size + 1):
        for chosen in combinations(range(size), count):
            data = leaves(size, frozenset(chosen))
            theirs = Tree.from_leaves(data)
            known, leaf, demands = walk(own, theirs, data)
            assert leaf == chosen[0]
            assert demands <= 2
            for index in range(leaf + 1):  # everything up to the difference can be opened
                verify_path(theirs.root, size, index, 1, known.hash((index, 1)), known.path(index))


@given(st.integers(10, 700), st.data())
def test_a_large_tree_needs_one_demand_per_four_levels(size: int, draw: st.DataObject) -> None:
    wrong = draw.draw(st.frozensets(st.integers(0, size - 1), min_size=1, max_size=4))
    data = leaves(size, wrong)
    own, theirs = Tree.from_leaves(leaves(size, frozenset())), Tree.from_leaves(data)
    known, leaf, demands = walk(own, theirs, data)
    assert leaf == min(wrong)
    depth = (size - 1).bit_length()
    assert demands <= -(-depth // 4) + 1
    before = draw.draw(st.integers(0, leaf))
    verify_path(
        theirs.root,
        size,
        before,
        1,
        own.node(before, 1) if before < leaf else known.hash((leaf, 1)),
        known.path(before),
    )


def test_equal_trees_have_no_difference() -> None:
    own = Tree.from_leaves(leaves(7, frozenset()))
    assert PartialTree(own.root, 7, own).first_difference() is None


def test_served_leaves_are_taken_only_if_they_give_the_root() -> None:
    own, data = Tree.from_leaves(leaves(5, frozenset())), leaves(5, frozenset({3}))
    known = PartialTree(Tree.from_leaves(data).root, 5, own)
    for wrong in ((), (0,), (1,), (2,), (4,), (2, 3), (3, 4)):
        assert not known.learn_leaves(leaves(5, frozenset(wrong)))
    assert not known.learn_leaves(data[:4])
    assert known.first_difference() == (0, 5)
    assert known.learn_leaves(data)
    assert known.first_difference() == (3, 1)
    assert known.data(3) == data[3]


def test_a_false_reveal_is_refused() -> None:
    own, data = Tree.from_leaves(leaves(20, frozenset())), leaves(20, frozenset({11}))
    theirs = Tree.from_leaves(data)
    known = PartialTree(theirs.root, 20, own)
    hashes = theirs.descendants(0, 20)
    for false in hashes[1:]:
        with pytest.raises(ProofError, match="revealed descendants"):
            known.learn_descendants((0, 20), [false, *hashes[1:]])
    known.learn_descendants((0, 20), hashes)
    while known.first_difference() != (11, 1):
        node = known.first_difference()
        assert node is not None
        known.learn_descendants(node, theirs.descendants(*node))
    for other in (*data[:11], *data[12:]):
        with pytest.raises(ProofError, match="revealed leaf"):
            known.learn_leaf(11, other)


def test_an_own_tree_of_another_size_is_refused() -> None:
    with pytest.raises(ProofError, match="own tree"):
        PartialTree(bytes(32), 4, Tree.from_leaves(leaves(5, frozenset())))
