"""tests/vectors/digests.json is what its generator writes, and what the package computes."""

from __future__ import annotations

import json
from typing import Any

from protocol.commitments.digests import Digester, leaf, seat_digest, turns
from protocol.commitments.hashing import leaf_hash, node_hash
from protocol.commitments.opened_chunks import Place
from protocol.dispute.keys import (
    accusation_word,
    attestation_word,
    informing_commitment,
    revealed_word,
    salt_hash,
    seat_salt,
    seat_secret,
)
from tests.vectors.generate_digests import FILE, SEGMENTS, STATE, STEPS, document, tensors
from tests.vectors.generate_trees import tensor_data

VECTORS: dict[str, Any] = json.loads(FILE.read_text())
SALT = bytes.fromhex(VECTORS["salt"][2:])


def rows(section: str) -> list[tuple[Any, ...]]:
    return [tuple(raw(value) for value in row) for row in zip(*VECTORS[section].values(), strict=True)]


def raw(value: Any) -> Any:
    return bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("0x") else value


def words(data: bytes, width: int) -> list[bytes]:
    return [data[i : i + width] for i in range(0, len(data), width)]


def test_the_file_is_what_its_generator_writes() -> None:
    assert document() == VECTORS, "run `python -m tests.vectors.generate_digests` and review the difference"


def test_secrets_salts_and_commitments() -> None:
    for *numbers, board, account, looks, informer, key, seed, secret, salt, hashed, commitment in rows(
        "seats"
    ):
        chain, task, seat, stage = map(int, numbers)
        addresses = ("0x" + address.hex() for address in (board, account, looks, informer))
        board, account, looks, informer = addresses
        assert seat_secret(key, chain, board, task, seat, stage) == secret
        assert seat_salt(chain, board, task, seat, account, seed, secret) == salt
        assert salt_hash(salt) == hashed
        assert informing_commitment(chain, looks, task, seat, informer, salt) == commitment


def test_attestations() -> None:
    for digest, hashed, word in rows("attestations"):
        assert attestation_word(digest, hashed) == word


def test_leaves() -> None:
    for chunk, due in rows("leaves"):
        assert leaf(SALT, chunk) == due


def test_tensors_and_states() -> None:
    for nbytes, thinning, step, root in rows("tensors"):
        assert Digester(SALT, thinning).tensor_root(tensor_data(nbytes), step) == root
    for thinning, step, root in rows("states"):
        assert Digester(SALT, thinning).state_root(tensors(step), step) == root


def test_seats_digests() -> None:
    for segments, result, digest in rows("digests"):
        assert seat_digest(words(segments, 32), result) == digest


def test_digests_of_looks() -> None:
    for segment, digest in rows("looks"):
        assert seat_digest([segment]) == digest


def test_reveals_and_accusations() -> None:
    for salt, root, word in rows("reveals"):
        assert revealed_word(salt, root) == word
    for *place, hashed, root, word in rows("accusations"):
        assert accusation_word(Place(*map(int, place)), hashed, root) == word


def test_openings_fold_to_the_digest() -> None:
    for thinning, segment, step, tensor, chunk, data, hashed, turned, depths, path, digest in rows(
        "openings"
    ):
        at = [int.from_bytes(word, "big") for word in words(turned, 4)]
        long = [int.from_bytes(word, "big") for word in words(depths, 4)]
        count = -(-STATE[tensor] // 1024)
        places = [(count, chunk), (len(STATE), tensor), (STEPS + 1, step), (SEGMENTS + 1, segment)]
        if segment == SEGMENTS:
            del places[2]
        assert list(zip(at, long, strict=True)) == [turns(*place) for place in places]
        c = turns(count, chunk)[0]
        held = segment == SEGMENTS or (c + step) % thinning == 0
        assert hashed == (leaf(SALT, data) if held else bytes(32))
        siblings, node = iter(words(path, 32)), hashed
        for tree, (sides, depth) in enumerate(zip(at, long)):
            node = leaf_hash(node) if tree else node
            for i in range(depth):
                sibling = next(siblings)
                node = node_hash(sibling, node) if sides >> i & 1 else node_hash(node, sibling)
        assert node == digest
        assert not list(siblings)
