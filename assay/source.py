"""Loads the Python file that builds a task. It is the submitter's own code, run on the submitter's machine
only.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import protocol
from assay.description import Description, Plan
from assay.errors import SourceError
from assay.starting import Start, read_start, seed_of
from protocol.errors import AssayError

if TYPE_CHECKING:
    from torch import Tensor

    from protocol.capture import CapturedStep

MODULE = "assay_task_source"
PROTOCOL = str(Path(protocol.__path__[0])) + os.sep
LOADING = (__file__, "<frozen importlib")
"""Prefixes of file names. A frame of such a file belongs to the loading of the submitter's file, so
tracebacks leave it out.
"""


@dataclass(frozen=True)
class Captured:
    """A plan with its captured step, and the key of its random numbers."""

    plan: Plan
    step: CapturedStep
    seed: int


def captured(description: Description) -> Captured:
    """Capture the step that a task file describes. Raises SourceError, StartError, CaptureError."""
    start = None if description.start is None else read_start(description.start)
    seed = seed_of(description.task, start)
    return Captured(description, build(description, start), seed)


def build(description: Description, start: Start | None = None) -> CapturedStep:
    """Capture the step of a training that takes `description.steps` steps. If `start` is given, the training
    begins at that state. Raises SourceError, and CaptureError for operations that cannot be captured.
    """
    from protocol.capture import CapturedStep

    name = description.task.build
    function = _function(description.source, name)
    options: dict[str, Any] = {}
    if (parts := description.task.micro_batches) is not None:
        options["micro_batches"] = parts
    if start is not None:
        options["resume"] = start.state
    for option in options:
        if not _takes(function, {option: options[option]}):
            given = "start" if option == "resume" else option
            raise SourceError(
                f"{description.source}, {name}: expected it to take {option}, for the task file gives {given}; "
                "add it and pass it on to `capture`, or remove it from the task file"
            )
    with told(description.source):
        step = function(description.steps, **options)
    if not isinstance(step, CapturedStep):
        raise SourceError(
            f"{description.source}, {name}",
            expected="it to return a captured step",
            got=type(step).__name__,
            remedy="return what `capture` of protocol.capture gives",
        )
    return step


def evaluate(description: Description, state: Mapping[str, Tensor]) -> float | None:
    """The result of the submitter's evaluation of a final state; None if the file names no such function."""
    name = description.result.evaluate
    if name is None:
        return None
    function = _function(description.source, name)
    with told(description.source):
        return float(function(state))


@contextmanager
def told(source: Path) -> Iterator[None]:
    """Turn errors of the submitter's code into a SourceError with their traceback.

    An AssayError passes unchanged. Any other error that `protocol` raises also passes unchanged, because it
    is a defect of `protocol`.
    """
    try:
        yield
    except AssayError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        if frames[-1].filename.startswith(PROTOCOL):
            raise
        own = [frame for frame in frames if not frame.filename.startswith(LOADING)]
        head = "Traceback (most recent call last):\n" if own else ""
        shown = "".join([head, *traceback.format_list(own), *traceback.format_exception_only(error)])
        raise SourceError(f"{source} raises {type(error).__name__}:\n{shown.rstrip()}") from error


def _takes(function: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(1, **options)
    except TypeError:
        return False
    return True


def _function(source: Path, name: str) -> Callable[..., Any]:
    """Run a Python file and return one of its functions."""
    spec = importlib.util.spec_from_file_location(MODULE, source)
    if spec is None or spec.loader is None:
        raise SourceError(
            source,
            expected="a Python file (.py)",
            got="another",
            remedy="name it in task.source",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses and others look up their module
    with told(source):
        spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise SourceError(
            source,
            expected=f"a function {name}",
            got="none",
            remedy="correct the task file",
        )
    return found  # type: ignore[no-any-return]
