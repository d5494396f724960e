"""Proof files: what the contracts say about a result, in one JSON document (encoding.md section 7).

A proof is a claim, and nothing in it is trusted. `differing` finds the first field that differs from what the
chain says. The chain has only hashes of the manifest and of the lists of roots. `require_consistent` finds
the first of these fields that does not fit its hash. The module `proving` reads the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from assay.errors import ProofMalformed, ProofMismatch
from protocol.chain.deployment import Address, Deployment, first_fault
from protocol.commitments import segment_tree, state_root
from protocol.node.format_versions import only
from protocol.tasks.bundles import BundleMalformed
from protocol.tasks.bundles.manifest import Manifest, parse_manifest
from protocol.tasks.task import MAX_SEGMENTS, MAX_TENSORS, Terms

VERSION: Final = 1
MAX_BYTES: Final = 1 << 27
"""Limit on the size of a proof file in bytes: 72 for each of 2^20 segments, 16 MiB for the manifest, and a
margin.
"""
METADATA: Final = "assay.proof"
"""The key under which a safetensors file's metadata holds the text of a proof."""
MAX_GAMES: Final = 1 << 16
MAX_LOOKS: Final = 1 << 8

Hash = Annotated[str, Field(pattern=r"^0x[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Name = Annotated[str, Field(pattern=r"^[a-z_]{1,32}$")]


def _terms_of(given: object) -> Terms:
    """The terms in a proof's JSON object. Raises ValueError."""
    if isinstance(given, Terms):
        return given
    kinds = {field.name: field.type for field in fields(Terms)}
    if not isinstance(given, Mapping) or given.keys() != kinds.keys():
        raise ValueError(f"not an object of exactly {', '.join(kinds)}")
    return Terms(**{name: _field_of(name, str(kinds[name]), value) for name, value in given.items()})


def _field_of(name: str, kind: str, value: object) -> Any:
    if kind == "int" and type(value) is int:
        return value
    if kind == "str" and isinstance(value, str):
        return value
    if kind == "bytes" and isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    raise ValueError(f"{name}: not {'0x and hexadecimal digits' if kind == 'bytes' else f'of type {kind}'}")


def _plain_terms(terms: Terms) -> dict[str, Any]:
    values = {field.name: getattr(terms, field.name) for field in fields(Terms)}
    return {name: f"0x{value.hex()}" if isinstance(value, bytes) else value for name, value in values.items()}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SeatFact(_Model):
    """A seat or a look, by its number. `attestation` is the 32-byte word that the audit board stores for the
    attestation of the seat or look; None without an attestation.
    """

    number: Count
    account: Address
    segments: Annotated[list[Count], Field(max_length=64)]
    attested: bool
    caught: bool
    attestation: Hash | None


class GameFact(_Model):
    """A game, by its number: its progress, and how it ended. Segment and step are 0 if the game has not
    reached them.
    """

    number: Count
    challenger: Address
    segment: Count
    step: Count
    phase: Name
    verdict: Name


class TaskFacts(_Model):
    """What the contracts say about a task at one block. Amounts are token units."""

    id: Annotated[int, Field(ge=1, lt=1 << 63)]
    status: Literal["submitted", "settled"]
    submitter: Address
    solver: Address
    price: Annotated[int, Field(ge=0, lt=1 << 128)]
    terms: Annotated[Terms, PlainValidator(_terms_of), PlainSerializer(_plain_terms)]
    segment_root: Hash
    result_root: Hash
    seats: Annotated[list[SeatFact], Field(max_length=32)]
    looks: Annotated[list[SeatFact], Field(max_length=MAX_LOOKS)]
    games: Annotated[list[GameFact], Field(max_length=MAX_GAMES)]


class BlockFact(_Model):
    """The block at which the contracts were read; `time` in seconds since 1970."""

    number: Count
    hash: Hash
    time: Count


class Proof(_Model):
    """A proof file. `final` says whether the task is settled in a final block. `segment_roots` are the roots
    of the states after segments 0 … K, or None if nobody served them. `tensor_roots` are the roots of the
    result's tensors, in the order of the manifest's state. `manifest` is the text of the bundle's manifest,
    whose SHA-256 is in the terms.
    """

    format: Literal["assay-proof"] = "assay-proof"
    version: Annotated[int, only(VERSION)] = VERSION
    deployment: Deployment
    block: BlockFact
    final: bool
    task: TaskFacts
    segment_roots: Annotated[list[Hash], Field(max_length=MAX_SEGMENTS + 1)] | None
    tensor_roots: Annotated[list[Hash], Field(min_length=1, max_length=MAX_TENSORS)]
    manifest: str

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.model_dump_json(indent=1) + "\n"

    @property
    def roots(self) -> list[bytes] | None:
        """The `segment_roots` as bytes."""
        return None if self.segment_roots is None else [word(root) for root in self.segment_roots]


def word(text: str) -> bytes:
    """The 32 bytes of a `Hash`."""
    return bytes.fromhex(text.removeprefix("0x"))


def load_proof(path: Path) -> Proof:
    """Read the proof in a file. Raises ProofMalformed."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _malformed(str(path), "a readable file", type(error).__name__) from error
    return parse_proof(data, str(path))


def parse_proof(data: str | bytes, what: str) -> Proof:
    """Parse a proof, without comparing it with anything. Raises ProofMalformed."""
    if len(data) > MAX_BYTES:
        raise _malformed(what, f"at most {MAX_BYTES} bytes", "more")
    try:
        return Proof.model_validate_json(data)
    except ValidationError as error:
        got = first_fault(error)
        raise _malformed(what, f"an assay-proof of version {VERSION}", ascii(got[:200])[1:-1]) from error


def differing(said: BaseModel, found: BaseModel, where: str) -> tuple[str, Any, Any] | None:
    """The first field of a proof that differs from what was found: its path, what was found, and what the
    proof says. None if no field differs.
    """
    return _differing(said.model_dump(mode="json"), found.model_dump(mode="json"), where)


def _differing(said: Any, found: Any, where: str) -> tuple[str, Any, Any] | None:
    if said == found and type(said) is type(found):
        return None
    pairs: list[tuple[object, Any, Any]] = []
    if isinstance(said, dict) and isinstance(found, dict) and said.keys() == found.keys():
        pairs = [(key, said[key], found[key]) for key in said]
    elif isinstance(said, list) and isinstance(found, list):
        if len(said) != len(found):
            return where, f"{len(found)} entries", f"{len(said)}"
        pairs = [(index, *both) for index, both in enumerate(zip(said, found, strict=True))]
    inner = (_differing(one, other, f"{where}.{key}") for key, one, other in pairs)
    return next((each for each in inner if each is not None), (where, found, said))


def require_consistent(proof: Proof) -> Manifest:
    """Check all parts of a proof whose hashes must equal values in `proof.task`. These values were already
    compared with the chain. Returns the bundle's manifest. Raises ProofMismatch.
    """
    task, terms = proof.task, proof.task.terms
    digest = sha256(proof.manifest.encode(errors="surrogatepass")).digest()
    if digest != terms.bundle_hash:
        raise ProofMismatch("manifest", f"SHA-256 {terms.bundle_hash.hex()}", digest.hex())
    try:
        manifest = parse_manifest(proof.manifest.encode())
    except BundleMalformed as error:
        raise ProofMismatch(
            "manifest", error.expected, error.got, "its task should not have been taken"
        ) from error
    tensors = [word(root) for root in proof.tensor_roots]
    if not len(tensors) == terms.state_tensors == len(manifest.state):
        raise ProofMismatch(
            "tensor_roots", f"{terms.state_tensors}, one for each tensor of the state", len(tensors)
        )
    if (root := state_root(tensors)) != word(task.result_root):
        raise ProofMismatch(
            "tensor_roots", f"those under the result's root {task.result_root}", f"0x{root.hex()}"
        )
    if (roots := proof.roots) is not None:
        if len(roots) != terms.segments + 1:
            raise ProofMismatch("segment_roots", f"{terms.segments + 1} roots", len(roots))
        if (root := segment_tree(roots).root) != word(task.segment_root):
            raise ProofMismatch(
                "segment_roots", f"those under the root {task.segment_root}", f"0x{root.hex()}"
            )
    return manifest


def _malformed(what: str, expected: str, got: str) -> ProofMalformed:
    return ProofMalformed(
        what,
        expected=expected,
        got=got,
        remedy="name a file that `assay result` wrote, with this release or an older one",
    )
