"""Write digests.json: salts, digests and their openings (audit.md section 4). README.md has the format.

The values come from a second implementation, which works leaf by leaf. Deterministic. Run as `python -m
tests.vectors.generate_digests`.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from tests.vectors.generate_trees import tensor_data

FILE = Path(__file__).with_name("digests.json")
ADDRESSES = ["0x" + name.hex().ljust(40, "0") for name in (b"board", b"account", b"looks", b"informer")]
SEATS = (
    # chain, task, seat, stage
    (1, 1, 0, 0),
    (31_337, 7, 2, 0),
    (8_453, 2**200 + 5, 31, 1),
    (2**256 - 1, 2**256 - 1, 255, 255),
)
LEAVES = (1, 31, 32, 33, 64, 1_000, 1_023, 1_024)
COUNTS = (*range(1, 10), 33, 64, 65)
RAGGED = (
    (4_097, 0),
    (5_000, 3),
    (7 * 1_024, 6),
    (7 * 1_024 - 1, 1),
    (1_000 * 1_024, 59),
    (999 * 1_024 + 8, 5),
)
"""Further tensors, each as a pair: its size in bytes, and its state number. They add partial last chunks,
tensors with many more chunks, and state numbers above 3.
"""
THINNINGS = (1, 4, 64)
STATE = (4, 5_000, 9 * 1_024, 1_025)
"""Bytes of the tensors of one state."""
STEPS, SEGMENTS = 5, 3
"""C, the steps of a segment, and q, the segments of the opened seat."""

Hashes = Sequence[bytes]


def word(value: int | bytes) -> bytes:
    """A number, or an address, as the 32 bytes of abi.encode."""
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


def leaf(salt: bytes, chunk: bytes) -> bytes:
    """Hash of a chunk. The chunk is cut into pieces of 32 bytes; the last piece is padded with zeros. The
    hash covers the pieces and then the chunk's length, each preceded by the salt.
    """
    message = b"".join(salt + chunk[i : i + 32].ljust(32, b"\0") for i in range(0, len(chunk), 32))
    return sha256(message + salt + word(len(chunk))).digest()


def opened(hashes: Hashes, index: int) -> tuple[bytes, list[bytes], int]:
    """Three values for a tree over leaf hashes: its root; the path of leaf `index`, bottom first; and the
    turns of that leaf.
    """
    if len(hashes) == 1:
        return hashes[0], [], 0
    k = 1
    while 2 * k < len(hashes):
        k *= 2
    left, right = hashes[:k], hashes[k:]
    if index < k:
        root, path, turns = opened(left, index)
        return sha256(b"\1" + root + (other := opened(right, 0)[0])).digest(), [*path, other], turns
    root, path, turns = opened(right, index - k)
    other = opened(left, 0)[0]
    return sha256(b"\1" + other + root).digest(), [*path, other], turns | 1 << len(path)


def numbers(count: int) -> list[tuple[int, int]]:
    """The turns and the depth of each leaf of a tree with `count` leaves."""
    if count == 1:
        return [(0, 0)]
    k = 1
    while 2 * k < count:
        k *= 2
    left = [(turns, depth + 1) for turns, depth in numbers(k)]
    return left + [(turns | 1 << depth, depth + 1) for turns, depth in numbers(count - k)]


def leaves(salt: bytes, thinning: int, step: int, data: bytes) -> list[bytes]:
    """For each chunk of a tensor: the chunk's hash, or the zero word if the chunk is thinned out."""
    chunks = [data[i : i + 1024] for i in range(0, len(data), 1024)]
    return [
        leaf(salt, chunk) if (turns + step) % thinning == 0 else bytes(32)
        for chunk, (turns, _) in zip(chunks, numbers(len(chunks)))
    ]


def above(roots: Hashes) -> list[bytes]:
    """Leaf hashes of a tree whose leaves are the roots of other trees."""
    return [sha256(b"\0" + root).digest() for root in roots]


def root_of(hashes: Hashes) -> bytes:
    """Root of the tree over these leaf hashes."""
    return opened(hashes, 0)[0]


def some(name: str) -> bytes:
    """32 bytes derived from a name."""
    return sha256(name.encode()).digest()


def tensors(seed: int) -> list[bytes]:
    """The tensors of one state. They are filled with the sequence of bytes that fills the tensors in
    trees.json, but from byte `seed` of this sequence on.
    """
    return [tensor_data(seed + nbytes)[seed:] for nbytes in STATE]


def state_root(salt: bytes, thinning: int, step: int, state: Hashes) -> bytes:
    """Root of a state."""
    return root_of(above([root_of(leaves(salt, thinning, step, data)) for data in state]))


def seats() -> list[tuple[Any, ...]]:
    """A row for each seat: its inputs, and all values derived from them except the digest."""
    board, account, looks, informer = (bytes.fromhex(address[2:]) for address in ADDRESSES)
    found = []
    for number, (chain, task, seat, stage) in enumerate(SEATS):
        key, seed = some(f"key {number}"), some(f"seed {number}")
        message = b"assay secret" + word(chain) + board + word(task) + word(seat) + bytes([stage])
        secret = hmac.new(key, message, sha256).digest()
        numbers = word(chain) + word(board) + word(task) + word(seat)
        salt = keccak(b"assay salt".ljust(32, b"\0") + numbers + word(account) + seed + secret)
        commitment = keccak(
            word(chain) + word(looks) + word(task) + word(seat) + word(informer) + salt  # two other addresses
        )
        row = (*map(str, (chain, task, seat, stage)), *ADDRESSES, key, seed, secret, salt, keccak(salt))
        found.append((*row, commitment))
    return found


def tensor_rows(salt: bytes) -> list[tuple[Any, ...]]:
    """Rows of tensor roots: bytes of the tensor, thinning, state number, root."""
    sizes = [(1_024 * count, count % 4) for count in COUNTS]
    return [
        (nbytes, thinning, step, root_of(leaves(salt, thinning, step, tensor_data(nbytes))))
        for nbytes, step in [*sizes, *RAGGED]
        for thinning in THINNINGS
    ]


def openings(salt: bytes) -> list[tuple[Any, ...]]:
    """Openings of a seat's digest: chunks with their paths through all trees up to the digest's root."""
    found = []
    for thinning in (1, 4):
        states = [[tensors(10 * s + j) for j in range(STEPS + 1)] for s in range(SEGMENTS)]
        roots = [
            [state_root(salt, thinning, j, state) for j, state in enumerate(segment)] for segment in states
        ]
        segments = [root_of(above(segment)) for segment in roots]
        result = state_root(salt, 1, STEPS, states[-1][-1])
        for s, j, t, c in ((0, 0, 0, 0), (1, 3, 2, 1), (2, 5, 1, 4), (1, 4, 2, 8), (3, 5, 3, 1)):
            state, w = (states[-1][-1], 1) if s == SEGMENTS else (states[s][j], thinning)
            chunks = leaves(salt, w, j, state[t])
            below = [root_of(leaves(salt, w, j, data)) for data in state]
            trees = [(chunks, c), (above(below), t)]
            if s < SEGMENTS:  # the result is a state, but not a leaf of a step tree
                trees.append((above(roots[s]), j))
            trees.append((above([*segments, result]), s))
            paths = [opened(hashes, index) for hashes, index in trees]
            found.append(
                (
                    *(thinning, s, j, t, c),
                    state[t][1024 * c : 1024 * c + 1024],
                    chunks[c],
                    b"".join(turns.to_bytes(4, "big") for _, _, turns in paths),
                    b"".join(len(path).to_bytes(4, "big") for _, path, _ in paths),
                    b"".join(node for _, path, _ in paths for node in path),
                    paths[-1][0],
                )
            )
    return found


def reveals(salt: bytes) -> list[tuple[Any, ...]]:
    """Rows of reveals: the salt, the segment root, and the 32-byte word that the contract stores for the reveal."""
    pairs = [(salt, some("segment 0")), (some("salt"), bytes(32))]
    return [(*pair, keccak(b"".join(pair))) for pair in pairs]


def accusations(salt: bytes) -> list[tuple[Any, ...]]:
    """Rows of accusations: their values, and the 32-byte word that the contract stores for the accusation."""
    places = [(0, 0, 0, 0), (1, 2, 3, 4), (65_536, 65_534, 2**32 - 1, 32)]
    found = []
    for number, place in enumerate(places):
        words = [leaf(salt, tensor_data(number + 1)), some(f"segment {number}")]
        found.append((*place, *words, keccak(b"".join([*map(word, place), *words]))))
    return found


def document() -> dict[str, Any]:
    """The whole file as JSON values."""
    rows = seats()
    salt = rows[0][11]
    attested = [(some(f"digest {i}"), row[12]) for i, row in enumerate(rows)]
    lists = [[some(f"segment {i}") for i in range(count)] for count in (1, 2, 3, 8)]
    names = "chain task seat stage board account looks informer key seed secret salt salt_hash commitment"
    return {
        "salt": text(salt),
        "seats": columns(names, rows),
        "attestations": columns(
            "digest salt_hash word",
            [(digest, hashed, keccak(digest + hashed)) for digest, hashed in attested],
        ),
        "leaves": columns("chunk leaf", [(data, leaf(salt, data)) for data in map(tensor_data, LEAVES)]),
        "tensors": columns("bytes thinning step root", tensor_rows(salt)),
        "states": columns(
            "thinning step root",
            [(w, j, state_root(salt, w, j, tensors(j))) for w in (*THINNINGS, 2) for j in (0, 1, 5, 63, 64)],
        ),
        "digests": columns(
            "segments result digest",
            [(b"".join(roots), some("result"), root_of(above([*roots, some("result")]))) for roots in lists],
        ),
        "looks": columns(
            "segment digest", [(root, root_of(above([root]))) for root in map(some, ("look 0", "look 1"))]
        ),
        "reveals": columns("salt segment_root word", reveals(salt)),
        "accusations": columns("step tensor turns depth leaf segment_root word", accusations(salt)),
        "openings": columns(
            "thinning segment step tensor chunk data leaf turns depths path digest", openings(salt)
        ),
    }


def columns(names: str, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """A table stored as columns, from its rows. `names` has the names of the columns."""
    return {
        name: [text(row[i]) if isinstance(row[i], bytes) else row[i] for row in rows]
        for i, name in enumerate(names.split())
    }


def text(value: bytes) -> str:
    """0x and hexadecimal digits."""
    return "0x" + value.hex()


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
