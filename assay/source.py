"""Loading the Python file that builds a task. It is the submitter's own code, run on the submitter's machine only."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.description import Description
from assay.errors import SourceError

if TYPE_CHECKING:
    from torch import Tensor

    from protocol.capture import CapturedStep

MODULE = "assay_task_source"


def build(description: Description) -> CapturedStep:
    """The captured step of all K C steps. Raises SourceError, and CaptureError for operations that have no program."""
    from protocol.capture import CapturedStep

    name = description.task.build
    function = _function(description.source, name)
    parts = description.task.micro_batches
    options = {} if parts is None else {"micro_batches": parts}
    if options and not _takes(function, options):
        raise SourceError(
            f"{description.source}, {name}: expected it to take micro_batches, which the task file gives; "
            "add it and pass it on to `capture`, or remove it from the task file"
        )
    captured = function(description.steps, **options)
    if not isinstance(captured, CapturedStep):
        raise SourceError(
            f"{description.source}, {name}",
            expected="it to return a captured step",
            got=type(captured).__name__,
            remedy="return what `capture` of protocol.capture gives",
        )
    return captured


def evaluate(description: Description, state: Mapping[str, Tensor]) -> float | None:
    """What the submitter's own function says of a final state; None if the file names no such function."""
    name = description.result.evaluate
    return None if name is None else float(_function(description.source, name)(state))


def _takes(function: Callable[..., Any], options: Mapping[str, int]) -> bool:
    try:
        inspect.signature(function).bind(1, **options)
    except TypeError:
        return False
    return True


def _function(source: Path, name: str) -> Callable[..., Any]:
    """A function of a Python file, which is run for it."""
    spec = importlib.util.spec_from_file_location(MODULE, source)
    if spec is None or spec.loader is None:
        raise SourceError(
            source,
            expected="a Python file (.py)",
            got="another",
            remedy="name it in task.source",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses and their like look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SourceError(
            source,
            expected="it to load",
            got=f"{type(error).__name__}: {error}",
            remedy="run it with python to see where",
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise SourceError(
            source,
            expected=f"a function {name}",
            got="none",
            remedy="correct the task file",
        )
    return found  # type: ignore[no-any-return]
