"""How the proof of a result is stored on disk: in a file next to the state's file, and in the header of the
state's file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from assay.errors import NotHeld, ResultError
from assay.proofs import METADATA, Proof
from assay.proving import prove
from assay.replacing import PROOF
from assay.results import Result
from protocol.chain.client import Client
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home
from protocol.tasks.bundles.write import MANIFEST

MAX_METADATA: Final = 90_000_000
"""Limit on the size in bytes of a proof in a header: safetensors reads no header above 100,000,000 bytes."""


def proof_of(client: Client, home: Home, result: Result) -> Proof:
    """The proof of a fetched result. Raises ResultError, ChainError."""
    view, terms = client.market.task(result.task), client.market.terms(result.task)
    roots = None
    with suppress(NotHeld):
        roots = result.holders.roots(view.root, view.size, terms.segments)
    manifest = (home.bundles / terms.bundle_hash.hex() / MANIFEST).read_bytes()
    return prove(client, result.task, roots, result.program.tensor_roots(result.state), manifest)


def metadata(proof: Proof) -> dict[str, str]:
    """The header entries for a state's proof. Raises ResultError for a proof that is too large for a header."""
    text = proof.text
    size = len(json.dumps(text, ensure_ascii=False).encode())
    if size > MAX_METADATA:
        raise ResultError(
            "proof",
            expected=f"at most {MAX_METADATA} bytes, for it to be embedded",
            got=size,
            remedy="leave --embed out: the proof is written beside the state",
        )
    return {METADATA: text}


def save(proof: Proof, folder: Path) -> Path:
    """Write `proof.json` into a folder, completely or not at all, and return its path."""
    path = folder / PROOF
    write_atomically(path, proof.text.encode())
    return path
