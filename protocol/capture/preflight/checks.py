"""Refusals of the preflight. Each function returns a `Problem` for its caller to raise, or a note."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from protocol.capture.errors import Problem
from protocol.capture.inputs.python_state import Change
from protocol.capture.preflight.compare import NotFinite
from protocol.capture.tracing.sources import source_of, source_of_error, traceback_of

KEEP = (
    "keep it as a buffer of the model, written by tensor operations; if this only prepares the model, run it on a "
    "batch before capturing"
)
DRAWN = "draw them by torch, whose random numbers are the state's in a program, or when the data are made"


def moved(change: Change) -> Problem:
    """The refusal for a step that changes a Python value or draws from Python's or NumPy's random numbers."""
    if change.where.startswith("the state of "):
        return Problem(f"the step draws from {change.where.removeprefix('the state of ')}", DRAWN)
    return Problem(f"{change.where} changes from {change.before} to {change.after} in a step", KEEP)


def traced_otherwise(what: str, first: Node, second: Node) -> Problem:
    """The refusal for a step whose two traces differ at a node; `what` describes the difference."""
    remedy = (
        "make it a constant, an entry of the dataset, or a buffer of the model that tensor operations write"
    )
    return Problem(
        f"the step is not the same every time: {what}", remedy, source_of(first) or source_of(second)
    )


def asks_for_the_time(function: str, source: str) -> Problem:
    """The refusal for code that calls `function`, a clock, at line `source`."""
    remedy = "take it out of the objective and the model: in a program no time passes"
    return Problem(f"the step asks for the time, {function}", remedy, source)


def refused_by_torch(error: Exception) -> Problem:
    """The refusal for a step that raises `error` in torch on a batch that the program draws."""
    what = f"torch refuses a batch of the data: {type(error).__name__}: {error}"
    remedy = "run the objective on a batch of the dataset"
    return Problem(what, remedy, source_of_error(error), traceback_of(error), error)


def run_otherwise(differences: str) -> Problem:
    """The refusal for a step whose results in torch differ from those of its trace."""
    return Problem(
        f"the step computes another result when it runs than it did when it was traced: {differences}",
        "look for values that Python keeps between steps, or that depend on what the batch holds",
    )


def depends_on_the_past(names: Sequence[str]) -> Problem:
    """The refusal for a step in which some results depend on what an earlier step left in Python. `names` are
    the names of these results.
    """
    return Problem(
        f"the step computes {', '.join(names)} from what an earlier step has kept in Python, such as a tensor in "
        "an attribute",
        KEEP,
    )


def depends_on_another_phase(phase: str, names: Sequence[str]) -> Problem:
    """The refusal for a phase in which some results depend on what another phase left in Python. `names` are the
    names of these results.
    """
    return Problem(
        f"phase {phase} computes {', '.join(names)} from what another phase has kept in Python, such as a flag of the "
        "model or a tensor in an attribute",
        "let each objective set all that it reads, as with model.train() or model.eval() at its beginning; pass on "
        "tensors in a buffer of the model, written by tensor operations",
    )


def computed_otherwise(operation: str, source: str, error: float, differences: str) -> Problem:
    """The refusal for an operation whose result is further from torch's than its number formats explain."""
    what = f"{operation} computes something else than torch, error {error:.2g}: {differences}"
    return Problem(what, "report it: no program may differ from torch", source)


def not_finite(found: NotFinite) -> str:
    """The note on a tensor that holds NaN or infinity in torch too."""
    return f"{found.name} is not finite, in torch as in the program: its other elements were not compared"


def not_finite_in_one(found: NotFinite) -> Problem:
    """The refusal for a tensor whose NaN or infinite elements differ between the exact step and torch."""
    where = "torch and the program, in other elements" if found.in_torch and found.in_program else ""
    where = where or ("torch, not in the program" if found.in_torch else "the program, not in torch")
    remedy = (
        "keep the step's values away from the limits of float32: a smaller learning rate, a clamp, or an epsilon in "
        "divisions, logarithms and roots"
    )
    return Problem(f"{found.name} is not finite in {where}", remedy)
