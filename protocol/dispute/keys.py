"""Names that both sides and the contract compute: claim keys, priority commitments (encoding.md section 5)."""

from __future__ import annotations

from typing import Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from protocol.program.program import Program

SEGMENT_UNKNOWN: Final = 2**32 - 1
"""Segment of a priority commitment made before the first wrong segment is known."""
NO_SEAT: Final = 255
"""In place of a seat's number: the challenger has none of the task."""


def steps_key(task: int, segment: int) -> bytes:
    """Key of the claim "the step tree of this segment" (segments count from 1)."""
    return keccak(encode(["uint8", "uint256", "uint32"], [1, task, segment]))


def trace_key(task: int, segment: int, step: int, before: bytes, after: bytes) -> bytes:
    """Key of the claim "the trace of this step" (steps count from 1), which goes from one state root to the other."""
    types = ["uint8", "uint256", "uint32", "uint32", "bytes32", "bytes32"]
    return keccak(encode(types, [2, task, segment, step, before, after]))


def callee_key(caller: bytes, call: bytes) -> bytes:
    """Key of the claim "the trace of this call, encoded, of the frame with key `caller`"."""
    return keccak(encode(["uint8", "bytes32", "bytes32"], [3, caller, keccak(call)]))


def frame_keys(top: bytes, program: Program, path: tuple[int, ...]) -> list[bytes]:
    """The key of a top frame, which runs `program`, and of each frame on the way down the calls of `path`."""
    keys = [top]
    for n in path:
        keys.append(callee_key(keys[-1], program.instructions[n].encode()))
        program = program.callee(n)
    return keys


def priority_commitment(
    chain_id: int, commitments: str, task: int, segment: int, challenger: str, salt: bytes
) -> bytes:
    """What a challenger commits to before it opens a game; `commitments`, the contract, and `challenger` are
    addresses."""
    return keccak(
        encode(
            ["uint256", "address", "uint256", "uint32", "address", "bytes32"],
            [chain_id, commitments, task, segment, challenger, salt],
        )
    )
