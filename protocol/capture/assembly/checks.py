"""Refusals when a step is assembled: clashing names, states that do not fit, and programs beyond limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.types import tensor_type
from protocol.program.errors import CheckError
from protocol.program.step import State
from protocol.program.types import TensorType


def require_distinct(names: Iterable[str]) -> None:
    """Raise `CaptureError` if a name occurs twice among the task's tensors."""
    taken = [name for name, count in Counter(names).items() if count > 1]
    if taken:
        what = f"several tensors of the task would be called {', '.join(taken)}"
        remedy = "rename the model's parameter or buffer, or the objective's metric, of this name"
        raise CaptureError([Problem(what, remedy)])


def require_continued(types: Mapping[str, TensorType], resume: State) -> None:
    """Raise `CaptureError` if the state of the earlier task lacks a tensor that `types` names, or holds this
    tensor with another type.
    """
    remedy = "resume from a task of this model, with this kind of optimiser and its options"
    found = {name: str(tensor_type(resume[name])) if name in resume else "nothing" for name in types}
    raise_any(
        Problem(f"resume: expected {types[name]} as {name}, got {got}", remedy)
        for name, got in found.items()
        if got != str(types[name])
    )


@contextmanager
def within_limits() -> Iterator[None]:
    """Raise `CaptureError` if `protocol.program.check` refuses the step program built in the `with` block."""
    try:
        yield
    except CheckError as error:
        remedy = (
            "make the step smaller: fewer micro-batches, fewer layers, fewer turns of a Python loop, or one operation "
            "on a stacked tensor in place of many"
        )
        raise CaptureError([Problem(f"the program of the step: {error}", remedy)]) from error
