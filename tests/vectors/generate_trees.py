"""Write trees.json: proofs about RFC 9162 trees that pytest and forge both replay. README.md has the format.

Deterministic: leaves come from a counter; most sizes are not powers of two.
Run as `python -m tests.vectors.generate_trees`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from protocol.commitments import Tree, chunk_count, root_from_path, tensor_root, verify_consistency
from protocol.commitments.errors import ProofError
from protocol.commitments.geometry import Node, siblings

FILE = Path(__file__).with_name("trees.json")
LEAVES = 70
TREE_SIZES = (1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 17, 21, 33, 47, 64, 70)
# Around the chunk size, around 16 chunks (one reveal), and one element.
TENSOR_SIZES = (1, 4, 1023, 1024, 1025, 2048, 3000, 16384, 16388, 17000)


def leaf_data(index: int) -> bytes:
    """Data of leaf `index`: 32 bytes. The leaves of all trees have 32 bytes, except in the trees of tensors."""
    return sha256(b"leaf" + index.to_bytes(4, "big")).digest()


def tensor_data(nbytes: int) -> bytes:
    """The contents of a test tensor of `nbytes` bytes: byte i is (7 i + i div 256) mod 256, so that all
    chunks differ.
    """
    return bytes((7 * i + i // 256) % 256 for i in range(nbytes))


def nodes_of(tree_size: int) -> list[Node]:
    """All nodes of a small tree; of a larger one, those at its left edge and at its ragged right edge."""
    nodes: list[Node] = []
    for size in range(1, tree_size + 1):
        for lo in range(tree_size - size + 1):
            try:
                siblings(tree_size, lo, size)
            except ProofError:
                continue
            if tree_size <= 9 or lo < 2 or lo + size > tree_size - 2:
                nodes.append((lo, size))
    return nodes


def build() -> dict[str, Any]:
    """The whole file as JSON values."""
    data = [leaf_data(i) for i in range(LEAVES)]
    trees = {n: Tree.from_leaves(data[:n]) for n in range(1, LEAVES + 1)}
    paths, descendants = [], []
    for n in TREE_SIZES:
        for lo, size in nodes_of(n):
            tree = trees[n]
            paths.append((n, lo, size, tree.node(lo, size), tree.subtree_path(lo, size), tree.root))
            descendants.append((size, tree.node(lo, size), tree.descendants(lo, size)))
    pairs = [
        (m, n) for n in TREE_SIZES for m in range(1, n + 1) if n <= 13 or m in (1, 2, 7, n // 2, n - 1, n)
    ]
    consistency = [
        (m, n, trees[m].root, trees[n].root, trees[LEAVES].consistency_proof(m, n)) for m, n in pairs
    ]
    path_names = ("tree_size", "lo", "size", "node", "path", "root")
    consistency_names = ("old_size", "new_size", "old_root", "new_root", "proof")
    return {
        "leaves": [_hex(item) for item in data],
        "roots": [_hex(trees[n].root) for n in range(1, LEAVES + 1)],
        "paths": _columns(path_names, paths),
        "refused_paths": _columns(path_names, _refused_paths(paths)),
        "consistency": _columns(consistency_names, consistency),
        "refused_consistency": _columns(consistency_names, _refused_consistency(consistency)),
        "descendants": _columns(("size", "node", "children"), _distinct(descendants)),
        "tensors": _columns(
            ("bytes", "chunks", "root"),
            [(n, chunk_count(n), tensor_root(tensor_data(n))) for n in TENSOR_SIZES],
        ),
    }


def _refused_paths(paths: list[Any]) -> list[Any]:
    """Damaged copies of some good paths: for each of these paths, one copy per kind of damage. The few copies
    that still verify are left out (see README.md).
    """
    cases = []
    for n, lo, size, node, path, root in paths[3::11]:
        flipped = [bytes([path[0][0] ^ 1]) + path[0][1:], *path[1:]] if path else [node]
        cases += [
            (n, lo, size, node, flipped, root),
            (n, lo, size, node, [*path, root], root),
            (n, lo, size, node, path[:-1] or [root], root),
            (n, lo, size, node, path[1:] or [node], root),
            (n, lo + 1, size, node, path, root),
            (n, lo, size + 1, node, path, root),
            (n + 1, lo, size, node, path, root),
            (2 * n, lo, size, node, path, root),
            (0, lo, size, node, path, root),
            (n, n, size, node, path, root),
            (n, lo, 0, node, path, root),
            (n, lo, size, root if size < n else leaf_data(0), path, root),
            (n, lo, size, node, path, node if size < n else leaf_data(0)),
        ]
    return [case for case in cases if not _path_holds(*case)]


def _refused_consistency(proofs: list[Any]) -> list[Any]:
    cases = []
    for m, n, old, new, proof in proofs[2::5]:
        flipped = [*proof[:-1], bytes([proof[-1][0] ^ 1]) + proof[-1][1:]] if proof else [new]
        cases += [
            (m, n, old, new, flipped),
            (m, n, old, new, [*proof, new]),
            (m, n, old, new, proof[:-1] or [old]),
            (m, n, old, new, proof[1:] or [old]),
            (m, n, new if old != new else leaf_data(0), old, proof),
            (m, n, leaf_data(0), new, proof),
            (m + 1, n, old, new, proof),
            (m - 1, n, old, new, proof),
            (m, 2 * n, old, new, proof),
            (n + 1, n, old, new, proof),
            (0, n, old, new, proof),
        ]
    return [case for case in cases if not _consistency_holds(*case)]


def _path_holds(n: int, lo: int, size: int, node: bytes, path: list[bytes], root: bytes) -> bool:
    try:
        return root_from_path(n, lo, size, node, path) == root
    except ProofError:
        return False


def _consistency_holds(m: int, n: int, old: bytes, new: bytes, proof: list[bytes]) -> bool:
    try:
        verify_consistency(m, n, old, new, proof)
    except ProofError:
        return False
    return True


def _distinct(rows: list[Any]) -> list[Any]:
    """The first row for each node size, sorted by size. One row is enough, because the shape of the tree
    below a node depends only on the node's size.
    """
    return sorted({row[0]: row for row in reversed(rows)}.values())


def _columns(names: tuple[str, ...], rows: list[Any]) -> dict[str, list[Any]]:
    return {name: [_plain(row[i]) for row in rows] for i, name in enumerate(names)}


def _plain(value: int | bytes | list[bytes]) -> int | str:
    if isinstance(value, int):
        return value
    return _hex(b"".join(value) if isinstance(value, list) else value)


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


if __name__ == "__main__":
    FILE.write_text(json.dumps(build(), indent=1) + "\n")
