"""Keeps a result from replacing another task's result, or a user's own file, in an output folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from assay.errors import ProofMalformed, ResultError, WeightsMalformed
from assay.proofs import load_proof
from assay.weights import header
from protocol.chain.deployment import Deployment

STATE: Final = "state.safetensors"
PROOF: Final = "proof.json"
METRICS: Final = "metrics.csv"


def origin_of(deployment: Deployment, task: int) -> dict[str, str]:
    """What tells a task from all others: its number, its market, and the first block of its chain. A result's
    header has these entries.
    """
    return {"task": str(task), "market": deployment.addresses.market, "genesis": deployment.genesis}


def require_replaceable(folder: Path, origin: Mapping[str, str]) -> None:
    """Check that the files of a result in a folder, if there are any, are those of the task with this
    `origin`. Only the entries that a file has are compared: the results of older releases have only the
    task's number. Raises ResultError.
    """
    state, proof, table = (folder / name for name in (STATE, PROOF, METRICS))
    if os.path.lexists(state):
        _require(state, _said_by_state(state), origin)
    if os.path.lexists(proof):
        _require(proof, _said_by_proof(proof), origin)
    if os.path.lexists(table) and not (state.exists() or proof.exists()):
        _require(table, None, origin)  # a table has no header: a result's lies beside a state or a proof


def _require(path: Path, said: Mapping[str, str] | None, origin: Mapping[str, str]) -> None:
    if said is not None and all(said.get(name, value) == value for name, value in origin.items()):
        return
    raise ResultError(
        f"output folder {path.parent}",
        expected=f"no {path.name}, or that of task {origin['task']} of market {origin['market']}",
        got="one that no result has" if said is None else f"that of {_named(said)}",
        remedy="name another with --output, or move the file away; nothing was written",
    )


def _named(said: Mapping[str, str]) -> str:
    others = [
        f"{what} {said[name]}" for name, what in (("market", "market"), ("genesis", "chain")) if name in said
    ]
    return ascii(" of ".join([f"task {said['task']}", *others])[:300])[1:-1]


def _said_by_state(path: Path) -> Mapping[str, str] | None:
    try:
        said = header(path)
    except WeightsMalformed:
        return None
    return said if "task" in said else None


def _said_by_proof(path: Path) -> Mapping[str, str] | None:
    try:
        proof = load_proof(path)
    except ProofMalformed:
        return None
    return origin_of(proof.deployment, proof.task.id)
