"""The vectors published with Certificate Transparency: leaves, roots, inclusion and consistency proofs.

Source: google/certificate-transparency, cpp/merkletree/merkle_tree_test.cc, and transparency-dev/merkle,
proof/verify_test.go (leaf numbers start at 1 there and at 0 here).
"""

from __future__ import annotations

import pytest

from protocol.commitments import ProofError, Tree, leaf_hash, root_from_path, verify_consistency

LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    bytes.fromhex(text)
    for text in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
# (index, size) -> path, bottom first
INCLUSION = {
    (0, 1): (),
    (0, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (5, 8): (
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
    (2, 3): ("fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",),
    (1, 5): (
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ),
}
# (old size, new size) -> proof
CONSISTENCY = {
    (1, 1): (),
    (1, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (6, 8): (
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
    (2, 5): (
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ),
    (6, 7): (
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
}


@pytest.mark.parametrize("size", range(9))
def test_roots_are_the_published_ones(size: int) -> None:
    assert Tree.from_leaves(LEAVES[:size]).root == ROOTS[size]


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_inclusion_paths_are_the_published_ones(index: int, size: int) -> None:
    published = [bytes.fromhex(text) for text in INCLUSION[index, size]]
    assert Tree.from_leaves(LEAVES[:size]).inclusion_path(index) == published
    assert root_from_path(size, index, 1, leaf_hash(LEAVES[index]), published) == ROOTS[size]


@pytest.mark.parametrize(("old", "new"), CONSISTENCY)
def test_consistency_proofs_are_the_published_ones(old: int, new: int) -> None:
    published = [bytes.fromhex(text) for text in CONSISTENCY[old, new]]
    assert Tree.from_leaves(LEAVES).consistency_proof(old, new) == published
    verify_consistency(old, new, ROOTS[old], ROOTS[new], published)


@pytest.mark.parametrize(("old", "new"), [pair for pair in CONSISTENCY if pair[0] != pair[1]])
def test_published_corruptions_of_consistency_proofs_are_refused(old: int, new: int) -> None:
    """The corruptions of `corruptConsistencyProof` in verify_test.go."""
    proof = [bytes.fromhex(text) for text in CONSISTENCY[old, new]]
    first, second = ROOTS[old], ROOTS[new]
    probes = [
        (old - 1, new, first, second, proof),
        (old + 1, new, first, second, proof),
        (old ^ 2, new, first, second, proof),
        (old, new * 2, first, second, proof),
        (old, new // 2, first, second, proof),
        (old, new, b"WrongRoot", second, proof),
        (old, new, first, b"WrongRoot", proof),
        (old, new, second, first, proof),
        *((old, new, first, second, [*proof, extra]) for extra in (b"", first, second)),
        *((old, new, first, second, [extra, *proof]) for extra in (b"", first, second, proof[0])),
        *((old, new, first, second, part) for part in ([], proof[:-1])),
    ]
    for probe in probes:
        with pytest.raises(ProofError):
            verify_consistency(*probe)
