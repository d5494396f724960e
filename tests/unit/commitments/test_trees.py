"""Trees and proofs of every size up to 70 against the RFC's recursion, and of some sizes against merkly."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merkly.mtree import MerkleTree

from protocol.commitments import (
    ProofError,
    Tree,
    fold_descendants,
    leaf_hash,
    node_hash,
    root_from_path,
    verify_consistency,
    verify_inclusion,
    verify_path,
)
from protocol.commitments.geometry import descendants, siblings
from tests.unit.commitments import reference

MAX = 70
LEAVES = [sha256(bytes([i])).digest() for i in range(MAX)]
TREES = {n: Tree.from_leaves(LEAVES[:n]) for n in range(1, MAX + 1)}
NODES = {n: reference.nodes(0, n) for n in TREES}


@st.composite
def tree_and_node(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, MAX))
    lo, size = draw(st.sampled_from(NODES[n]))
    return n, lo, size


@pytest.mark.parametrize("n", range(1, MAX + 1))
def test_roots_and_inclusion_paths_follow_the_rfc(n: int) -> None:
    tree, leaves = TREES[n], LEAVES[:n]
    assert (tree.size, tree.root) == (n, reference.mth(leaves))
    for index in range(n):
        path = tree.inclusion_path(index)
        assert path == reference.path(index, leaves)
        verify_inclusion(tree.root, n, index, leaves[index], path)


@pytest.mark.parametrize("n", range(1, MAX + 1))
def test_every_node_has_its_hash_its_path_and_its_descendants(n: int) -> None:
    tree = TREES[n]
    for lo, size in NODES[n]:
        inside = LEAVES[lo : lo + size]
        node = tree.node(lo, size)
        assert node == reference.mth(inside)
        assert root_from_path(n, lo, size, node, tree.subtree_path(lo, size)) == tree.root
        children = tree.descendants(lo, size)
        assert children == reference.descendants(inside, 4)
        assert len(children) <= 16
        assert fold_descendants(size, 4, children) == node


@pytest.mark.parametrize("n", range(1, MAX + 1))
def test_only_nodes_of_the_split_are_nodes(n: int) -> None:
    known = set(NODES[n])
    for lo in range(n + 2):
        for size in range(n + 3):
            if (lo, size) not in known:
                with pytest.raises(ProofError, match="no such node"):
                    siblings(n, lo, size)


@pytest.mark.parametrize("new", range(1, MAX + 1))
def test_consistency_proofs_follow_the_rfc(new: int) -> None:
    for old in range(1, new + 1):
        proof = TREES[MAX].consistency_proof(old, new)
        assert proof == reference.proof(old, LEAVES[:new])
        verify_consistency(old, new, TREES[old].root, TREES[new].root, proof)


@given(st.integers(1, 10**9), st.integers(0, 6))
def test_descendants_of_any_size_partition_the_node(size: int, levels: int) -> None:
    nodes = descendants(5, size, levels)
    ends = [lo + width for lo, width in nodes]
    assert [lo for lo, _ in nodes] == [5, *ends[:-1]]
    assert ends[-1] == 5 + size
    assert len(nodes) <= 2**levels


@given(tree_and_node(), st.data())
def test_a_path_with_any_single_change_is_refused(where: tuple[int, int, int], data: st.DataObject) -> None:
    n, lo, size = where
    tree = TREES[n]
    root, node, path = tree.root, tree.node(lo, size), tree.subtree_path(lo, size)
    verify_path(root, n, lo, size, node, path)
    bad: list[tuple[bytes, int, int, int, bytes, list[bytes]]] = [
        (flip(root, data), n, lo, size, node, path),
        (root, n, lo, size, flip(node, data), path),
        (root, n, lo, size, node[:-1], path),
        (root, n, lo, size, node, [*path, root]),
        (root, n, lo, size, node, [root, *path]),
    ]
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        bad.append((root, n, lo, size, node, [*path[:at], flip(path[at], data), *path[at + 1 :]]))
        bad.append((root, n, lo, size, node, path[:at] + path[at + 1 :]))
        bad.append((root, n, lo, size, node, [*path[:at], path[at][:31], *path[at + 1 :]]))
    other_lo = data.draw(st.integers(0, n + 1).filter(lambda value: value != lo))
    bad.append((root, n, other_lo, size, node, path))
    for case in bad:
        with pytest.raises(ProofError):
            verify_path(*case)


@given(tree_and_node(), st.integers(0, 2 * MAX), st.integers(0, 2 * MAX))
def test_a_changed_size_is_refused_unless_the_turns_are_the_same(
    where: tuple[int, int, int], tree_size: int, size: int
) -> None:
    """A path is checked with arbitrary sizes of tree and node. RFC 9162 roots do not bind sizes, so the path
    is accepted if these sizes give the same left and right turns on the way to the root as the true sizes do.
    Otherwise it is refused. For example, leaf 0 has the same turns in trees of 6 and 7 leaves.
    """
    n, lo, own = where
    tree = TREES[n]

    def turns(total: int, width: int) -> list[bool]:
        return [sibling < lo for sibling, _ in siblings(total, lo, width)]

    try:
        same = turns(tree_size, size) == turns(n, own)
    except ProofError:
        same = False
    case = (tree.root, tree_size, lo, size, tree.node(lo, own), tree.subtree_path(lo, own))
    if same:
        verify_path(*case)
    else:
        with pytest.raises(ProofError):
            verify_path(*case)


@given(st.integers(1, MAX), st.integers(1, MAX), st.data())
def test_a_consistency_proof_with_any_single_change_is_refused(a: int, b: int, data: st.DataObject) -> None:
    old, new = min(a, b), max(a, b)
    first, second = TREES[old].root, TREES[new].root
    proof = TREES[new].consistency_proof(old)
    bad: list[tuple[int, int, bytes, bytes, list[bytes]]] = [
        (old, new, flip(first, data), second, proof),
        (old, new, first, flip(second, data), proof),
        (old, new, first, second, [*proof, first]),
        (old, new, first, second, [first, *proof]),
        (new + 1, new, first, second, proof),
        (0, new, first, second, proof),
    ]
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        bad.append((old, new, first, second, [*proof[:at], flip(proof[at], data), *proof[at + 1 :]]))
        bad.append((old, new, first, second, proof[:at] + proof[at + 1 :]))
        bad.append((old, new, first, second, [*proof[:at], b"", *proof[at + 1 :]]))
    for case in bad:
        with pytest.raises(ProofError):
            verify_consistency(*case)


def test_a_byte_moved_between_neighbouring_hashes_is_refused() -> None:
    """SHA-256(0x01 || left || right) does not show where `left` ends, so every length is checked."""
    a, b, c, d = (TREES[4].node(i, 1) for i in range(4))
    with pytest.raises(ProofError, match="expected 32 bytes"):
        root_from_path(2, 0, 1, a + b[:1], [b[1:]])
    with pytest.raises(ProofError, match="expected 32 bytes"):
        root_from_path(2, 0, 1, a[:-1], [a[-1:] + b])
    with pytest.raises(ProofError, match="expected 32 bytes"):
        root_from_path(1, 0, 1, a + b[:1], [])
    with pytest.raises(ProofError, match="expected 32 bytes"):
        fold_descendants(2, 4, [a + b[:1], b[1:]])
    with pytest.raises(ProofError, match="expected 32 bytes"):
        verify_path(leaf_hash(b"") + b"!", 1, 0, 1, leaf_hash(b"") + b"!", [])
    left = TREES[2].root
    verify_consistency(3, 4, TREES[3].root, TREES[4].root, [c, d, left])
    old = node_hash(left, c[:-1])
    with pytest.raises(ProofError, match="expected 32 bytes"):
        verify_consistency(3, 4, old, TREES[4].root, [c[:-1], c[-1:] + d, left])


def test_a_consistency_proof_of_a_taller_tree_is_refused() -> None:
    """The roots and the proof are consistent, but belong to trees one level higher than the given sizes."""
    c, d, left, above = (TREES[4].node(lo, size) for lo, size in ((2, 1), (3, 1), (0, 2), (0, 4)))
    old, new = node_hash(above, TREES[3].root), node_hash(above, TREES[4].root)
    verify_consistency(7, 8, old, new, [c, d, left, above])
    with pytest.raises(ProofError, match="no hashes beyond the root"):
        verify_consistency(3, 4, old, new, [c, d, left, above])


def test_a_tree_proves_nothing_about_leaves_it_does_not_have() -> None:
    tree = TREES[5]
    for ask in (
        lambda: tree.consistency_proof(2, 6),
        lambda: tree.inclusion_path(5),
        lambda: tree.node(4, 2),
        lambda: tree.descendants(3, 2),
    ):
        with pytest.raises(ProofError):
            ask()


@given(st.integers(2, MAX), st.data())
def test_no_proof_links_trees_that_differ_in_an_old_leaf(new: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, new))
    changed = data.draw(st.integers(0, old - 1))
    other = [*LEAVES[:changed], b"changed", *LEAVES[changed + 1 : new]]
    for leaves in (other, LEAVES[:new]):
        proof = Tree.from_leaves(leaves).consistency_proof(old)
        with pytest.raises(ProofError):
            verify_consistency(old, new, TREES[old].root, Tree.from_leaves(other).root, proof)


@given(st.integers(1, MAX), st.integers(0, 5), st.data())
def test_a_changed_reveal_does_not_fold_to_the_node(size: int, levels: int, data: st.DataObject) -> None:
    tree = TREES[size]
    children = tree.descendants(0, size, levels)
    at = data.draw(st.integers(0, len(children) - 1))
    assert (
        fold_descendants(size, levels, [*children[:at], flip(children[at], data), *children[at + 1 :]])
        != tree.root
    )
    for wrong in (children[:-1], [*children, tree.root], [*children[:-1], b"short"]):
        with pytest.raises(ProofError):
            fold_descendants(size, levels, wrong)


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=70), max_size=40), st.integers(1, 300))
def test_all_constructors_agree(leaves: list[bytes], width: int) -> None:
    assert Tree.from_leaves(leaves).root == reference.mth(leaves)
    joined = b"".join(leaves)
    rows = [joined[i : i + width] for i in range(0, len(joined), width)]
    assert Tree.from_rows(joined, width).root == reference.mth(rows)
    assert Tree.from_rows(bytearray(joined), width).root == Tree.from_rows(memoryview(joined), width).root


def test_more_rows_than_one_batch_are_all_hashed() -> None:
    rows = [sha256(i.to_bytes(4, "big")).digest() for i in range(1500)]
    tree = Tree.from_rows(b"".join(rows), 32)
    assert tree.root == reference.mth(rows)
    for index in (0, 255, 256, 1023, 1499):
        verify_inclusion(tree.root, 1500, index, rows[index], tree.inclusion_path(index))


@pytest.mark.parametrize("n", [1, 2, 7, 64, 70])
def test_only_nodes_on_the_right_edge_are_hashed_again(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[bytes] = []

    def counting(left: bytes, right: bytes) -> bytes:
        hashed.append(left)
        return node_hash(left, right)

    monkeypatch.setattr("protocol.commitments.merkle.node_hash", counting)
    assert TREES[n].root == reference.mth(LEAVES[:n])
    assert len(hashed) == n.bit_count() - 1


@pytest.mark.parametrize("size", [1, 31, 33, 65])
def test_leaf_hashes_must_be_whole(size: int) -> None:
    with pytest.raises(ProofError, match="multiple of 32"):
        Tree.from_leaf_hashes(bytes(size))


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 8, 11, 13, 21, 33, 64, 70])
def test_merkly_builds_the_same_tree(n: int) -> None:
    """merkly, with our hash functions, gives the same roots and paths. It calls the function `tagged` for
    leaves, too: `left` is then the leaf's text, and `right` is empty.
    """

    def tagged(left: bytes, right: bytes) -> bytes:
        return node_hash(left, right) if right else sha256(b"\x00" + left).digest()

    words = [f"leaf {i}" for i in range(n)]
    theirs = MerkleTree(words, tagged)
    ours = Tree.from_leaves([word.encode() for word in words])
    assert ours.root == theirs.root
    for index, word in enumerate(words):
        assert ours.inclusion_path(index) == [item.data for item in theirs.proof(word)]


def flip(value: bytes, data: st.DataObject) -> bytes:
    """`value` with one bit changed."""
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    return (int.from_bytes(value, "big") ^ (1 << bit)).to_bytes(len(value), "big")
