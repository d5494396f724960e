"""The protocol's keys, salts and commitments: claim keys and priority commitments (encoding.md section 5),
a seat's secret, salt and attestation, and the words that the contracts store for looks (audit.md sections 4
and 6)."""

from __future__ import annotations

from hmac import digest as hmac_digest
from typing import TYPE_CHECKING, Final

from eth_abi.abi import encode
from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from protocol.commitments.opened_chunks import Place
from protocol.dispute.errors import DisputeError

if TYPE_CHECKING:
    from protocol.program.program import Program

SEGMENT_UNKNOWN: Final = 2**32 - 1
"""The segment number in a priority commitment that is made before the first wrong segment is known."""
NO_SEAT: Final = 255
"""Seat number of a challenger that has no seat in the task."""
SALT_TAG: Final = b"assay salt"
SECRET_TAG: Final = b"assay secret"
CHALLENGE_TAG: Final = b"assay challenge"
REPLAY_STAGE: Final = 0
"""The `stage` of `seat_secret` for a replay. The salt of the replay's digest is made from that secret."""


def steps_key(task: int, segment: int) -> bytes:
    """Key of the claim "the step tree of this segment". Segments count from 1."""
    return keccak(encode(["uint8", "uint256", "uint32"], [1, task, segment]))


def trace_key(task: int, segment: int, step: int, before: bytes, after: bytes) -> bytes:
    """Key of the claim "the trace of this step". Steps count from 1; `before` and `after` are the roots of
    the states before and after the step.
    """
    types = ["uint8", "uint256", "uint32", "uint32", "bytes32", "bytes32"]
    return keccak(encode(types, [2, task, segment, step, before, after]))


def callee_key(caller: bytes, call: bytes) -> bytes:
    """Key of the claim "the trace of this call" in the frame with key `caller`; `call` is the encoded instruction."""
    return keccak(encode(["uint8", "bytes32", "bytes32"], [3, caller, keccak(call)]))


def frame_keys(top: bytes, program: Program, path: tuple[int, ...]) -> list[bytes]:
    """The keys of the frames along the calls of `path`. The first is `top`, the key of the frame of `program`."""
    keys = [top]
    for n in path:
        keys.append(callee_key(keys[-1], program.instructions[n].encode()))
        program = program.callee(n)
    return keys


def priority_commitment(
    chain_id: int, commitments: str, task: int, segment: int, challenger: str, salt: bytes
) -> bytes:
    """The hash that a challenger commits before it opens a game. `commitments` is the address of the contract
    Commitments, and `challenger` is the challenger's address.
    """
    return keccak(
        encode(
            ["uint256", "address", "uint256", "uint32", "address", "bytes32"],
            [chain_id, commitments, task, segment, challenger, salt],
        )
    )


def challenge_salt(
    private_key: bytes,
    chain_id: int,
    commitments: str,
    task: int,
    seat: int,
    segment: int,
    before: bytes = b"",
) -> bytes:
    """The salt of an account's priority commitment. It is derived from the account's key. So if the salt is
    lost, it can be computed again, and the bond is safe. If an earlier commitment to the same challenge was
    not opened in time, `before` is the salt of that commitment.
    """
    message = CHALLENGE_TAG + _number(chain_id, 32) + to_canonical_address(commitments)
    message += _number(task, 32) + _number(seat, 32) + _number(segment, 4) + before
    return hmac_digest(_word("private key", private_key), message, "sha256")


def seat_secret(
    private_key: bytes, chain_id: int, board: str, task: int, seat: int, stage: int = REPLAY_STAGE
) -> bytes:
    """The secret of an account for a seat or look, whose number is `seat`. It is derived from the account's
    key whenever it is needed. `board` is the audit board's address.
    """
    message = SECRET_TAG + _number(chain_id, 32) + to_canonical_address(board)
    message += _number(task, 32) + _number(seat, 32) + _number(stage, 1)
    return hmac_digest(_word("private key", private_key), message, "sha256")


def seat_salt(
    chain_id: int, board: str, task: int, seat: int, account: str, seed: bytes, secret: bytes
) -> bytes:
    """The salt of a seat's digest. `seed` is the seed of the task's first draw, so no salt is known before
    that draw.
    """
    types = ["bytes32", "uint256", "address", "uint256", "uint256", "address", "bytes32", "bytes32"]
    words = _word("seed", seed), _word("secret", secret)
    return keccak(encode(types, [SALT_TAG, chain_id, board, task, seat, account, *words]))


def salt_hash(salt: bytes) -> bytes:
    """The hash of a salt, which an attestation contains."""
    return keccak(_word("salt", salt))


def attestation_word(digest: bytes, hashed_salt: bytes) -> bytes:
    """The word that the audit board stores for an attestation."""
    return keccak(
        encode(["bytes32", "bytes32"], [_word("digest", digest), _word("hash of the salt", hashed_salt)])
    )


def informing_commitment(
    chain_id: int, looks: str, task: int, seat: int, informer: str, salt: bytes
) -> bytes:
    """The hash that an informer commits before it shows a seat's salt. `looks` is the address of the contract
    Looks, and `informer` is the informer's address.
    """
    return keccak(
        encode(
            ["uint256", "address", "uint256", "uint256", "address", "bytes32"],
            [chain_id, looks, task, seat, informer, _word("salt", salt)],
        )
    )


def revealed_word(salt: bytes, segment_root: bytes) -> bytes:
    """The word that is stored when a seat or look reveals for a look that checks it. It is the hash of two
    things: the revealed salt, and the segment's root in the digest under that salt.
    """
    return keccak(
        encode(["bytes32", "bytes32"], [_word("salt", salt), _word("segment's root", segment_root)])
    )


def accusation_word(place: Place, leaf: bytes, segment_root: bytes) -> bytes:
    """The word stored for an accusation: a chunk's place, the chunk's hash under the revealed salt, and the
    segment's root that was revealed.
    """
    types = ["(uint32,uint32,uint32,uint8)", "bytes32", "bytes32"]
    words = _word("leaf", leaf), _word("segment's root", segment_root)
    return keccak(encode(types, [tuple(place), *words]))


def _word(what: str, value: bytes) -> bytes:
    """Return the value if it has 32 bytes, else raise DisputeError. The error does not show the value,
    because it may be a secret.
    """
    if len(value) != 32:
        raise DisputeError(
            what,
            expected="32 bytes",
            got=f"{len(value)} bytes",
            remedy="pass the bytes themselves, not their hex form",
        )
    return value


def _number(value: int, nbytes: int) -> bytes:
    if not 0 <= value < 1 << 8 * nbytes:
        raise DisputeError(
            "number", expected=f"0 to 2^{8 * nbytes} - 1", got=value, remedy="take it from the chain"
        )
    return value.to_bytes(nbytes, "big")
