"""Writes a fetched and checked result: the state, its proof, and the metrics of its last steps. Also runs the
evaluation that the task's file names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay import proof_files
from assay import source as sources
from assay.description import read
from assay.errors import ResultError
from assay.results import Result, save, save_history
from protocol.chain.client import Client
from protocol.errors import AssayError
from protocol.node.home import Home
from protocol.node.output import Output


def write(
    client: Client,
    home: Home,
    output: Output,
    found: Result,
    folder: Path,
    file: Path | None,
    embed: bool = False,
    lenient: bool = False,
) -> dict[str, Any]:
    """Write a result into a folder, print its metrics, and return the data for JSON. If the task's `file` is
    given, run the evaluation that it names. With `embed`, also put the proof into the state's header. With
    `lenient`, an error of the evaluation is printed instead of raised. Raises AssayError, such as SourceError
    or ChainError, and ResultError if the result cannot be written.
    """
    proof = proof_files.proof_of(client, home, found)
    try:
        path = save(found, folder, proof_files.metadata(proof) if embed else None)
        proved, table = proof_files.save(proof, folder), save_history(found, folder)
    except OSError as error:
        raise ResultError(
            f"result of task {found.task} in {folder}",
            expected="it to be written",
            got=error.strerror or type(error).__name__,
            remedy="see to the disk, or name another folder with --output",
        ) from error
    metrics = dict(found.metrics)
    try:
        metrics |= {} if file is None else _evaluated(file, found)
    except AssayError as error:
        if not lenient:
            raise
        output.say(f"the result was not evaluated: {error}")
    output.say(
        f"state of task {found.task} in {path}" + ("" if found.final else "; it may still be challenged")
    )
    for name, number in metrics.items():
        output.say(f"  {name} {number:.6g}")
    if table is not None:
        output.say(f"  metrics of the last steps in {table}")
    where = ", and in the state itself" if embed else ""
    output.say(f"  proof in {proved}{where}; `assay verify` compares it")
    if proof.segment_roots is None:
        output.say("  it has no roots of segments: nobody serves them")
    told = {
        "task": found.task,
        "file": str(path),
        "final": found.final,
        "metrics": metrics,
        "proof": str(proved),
    }
    return told | {"history": None if table is None else str(table)}


def _evaluated(file: Path, found: Result) -> dict[str, float]:
    """The value of the evaluation that a task's file names, by its name. Raises AssayError."""
    description = read(file)
    value = sources.evaluate(description, found.state)
    return {} if value is None else {str(description.result.evaluate): value}
