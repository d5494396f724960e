"""Writing a result that was fetched and checked: the state, the metrics of its last steps, its file's evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay import source as sources
from assay.description import read
from assay.results import Result, save, save_history
from protocol.node.output import Output


def write(output: Output, found: Result, folder: Path, file: Path | None) -> dict[str, Any]:
    """Write it into a folder, say its metrics, and return what programs are told. With the task's `file` its own
    evaluation is run. Raises SourceError, OSError.
    """
    path, table = save(found, folder), save_history(found, folder)
    metrics = dict(found.metrics)
    if file is not None:
        description = read(file)
        value = sources.evaluate(description, found.state)
        if value is not None:
            metrics[str(description.result.evaluate)] = value
    output.say(
        f"state of task {found.task} in {path}" + ("" if found.final else "; it may still be challenged")
    )
    for name, number in metrics.items():
        output.say(f"  {name} {number:.6g}")
    if table is not None:
        output.say(f"  metrics of the last steps in {table}")
    told = {"task": found.task, "file": str(path), "final": found.final, "metrics": metrics}
    return told | {"history": None if table is None else str(table)}
