"""Attestations in seats and looks: digests of states under the account's salt (audit.md section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from protocol.chain.accounts import development_account
from protocol.chain.client import Client
from protocol.commitments import step_tree
from protocol.commitments.digests import Digester, seat_digest, segment_path
from protocol.commitments.opened_chunks import Opening, open_chunk_of
from protocol.dispute.accusing import Chunk, Evidence, choose_place, evidence
from protocol.dispute.keys import salt_hash, seat_salt, seat_secret
from protocol.dispute.looks import Look, is_look
from sim.replay.training import STEPS, THINNING, Trained

_UNLOOKED: Final = bytes(31) + b"\x01"
"""Root of a segment attested without a replay."""


@dataclass(frozen=True)
class Attestation:
    """One account's attestation for seat or look `number`."""

    account: int
    """Ledger account number."""
    number: int
    secret: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    segments: tuple[int, ...]
    roots: tuple[bytes, ...]
    """Roots of the segments' step trees under the salt."""
    result: bytes | None
    """The attested result; None in a look."""

    @classmethod
    def of(
        cls, client: Client, account: int, task: int, number: int, trained: Trained, *, replayed: bool
    ) -> Attestation:
        """The attestation for the account's seat or look. Without a replay, its roots are made up."""
        chain, board = client.deployment.chain_id, client.audit
        key = bytes(development_account(account, chain).key)
        secret = seat_secret(key, chain, board.address, task, number)
        seed = board.audit(task).seed
        salt = seat_salt(chain, board.address, task, number, client.address, seed, secret)
        segments = tuple(board.segments(task, number))
        roots = tuple(
            step_tree(_states(trained, segment, salt)).root if replayed else _UNLOOKED for segment in segments
        )
        result = None if is_look(number) else trained.roots[-1]
        return cls(account, number, secret, salt, segments, roots, result)

    @property
    def digest(self) -> bytes:
        """The attested digest."""
        return seat_digest(self.roots, self.result)

    @property
    def salt_hash(self) -> bytes:
        """The salt's hash, which is published with the digest."""
        return salt_hash(self.salt)


class Target(NamedTuple):
    """The target of a look: a segment of an attestation, given by its position in the attestation."""

    attestation: Attestation
    position: int

    @classmethod
    def of(cls, look: Look, attestation: Attestation, each: int) -> Target:
        """The target of a look; `each` is q, the number of segments of a seat."""
        return cls(attestation, look.leaf(each)[0])

    @property
    def segment(self) -> int:
        """The segment's number."""
        return self.attestation.segments[self.position]

    @property
    def root(self) -> bytes:
        """The segment's root under the salt, as the account reveals it."""
        return self.attestation.roots[self.position]

    @property
    def path(self) -> list[bytes]:
        """The Merkle path in the attestation's tree. The root of this tree is the attestation's digest; the
        segment's root is one of its leaves, and the path starts there.
        """
        return segment_path(self.attestation.roots, self.attestation.result, self.position)

    def opening(self, trained: Trained, at: Chunk) -> Opening:
        """Open one chunk in the attestation's digest, to answer an accusation. The attesting party must have
        replayed the segment.
        """
        data, digester = trained.tensors(self.segment, at.step), Digester(self.attestation.salt, THINNING)
        return open_chunk_of(
            digester.tensor_tree(data[at.tensor], at.step),
            at.chunk,
            [digester.tensor_root(each, at.step) for each in data],
            at.tensor,
            _states(trained, self.segment, self.attestation.salt),
            at.step,
        )


def place(trained: Trained, segment: int, luck: Random) -> Chunk:
    """Choose the chunk that an accusation names, in the same way as nodes choose it."""
    states = _Replayed(trained, segment)
    sizes = [len(data) for data in states.tensors(0)]
    return choose_place(states, sizes, STEPS, THINNING, luck)


def shown(trained: Trained, segment: int, at: Chunk) -> Evidence:
    """The chunk at `at`, opened under the solver's step tree. The tree is computed by a replay of the
    segment, so it equals the solver's tree only if the solver's segment is right.
    """
    run = trained.checked
    data = trained.tensors(segment, at.step)[at.tensor]
    return evidence(data, at, run.tensor_roots(segment, at.step), run.step_roots(segment))


class _Replayed(NamedTuple):
    """The states of one segment."""

    trained: Trained
    segment: int

    def tensors(self, step: int, /) -> Sequence[bytes]:
        """Canonical bytes of the tensors of one state."""
        return self.trained.tensors(self.segment, step)


def _states(trained: Trained, segment: int, salt: bytes) -> list[bytes]:
    """Roots of a segment's states under a salt."""
    digester = Digester(salt, THINNING)
    return [digester.state_root(trained.tensors(segment, step), step) for step in range(STEPS + 1)]
