"""Refusals of a traced graph: operations without a rule, and uses for which a rule has no exact form.

A rule raises `Unsupported` next to the arithmetic concerned, because only the rule knows its limits.
`lowering.lower` turns each of these errors into a `Problem` with the node's source line, and raises all
problems together.
"""

from __future__ import annotations

import torch

from protocol.capture.errors import Problem
from protocol.capture.tracing.checks import DRAWN
from protocol.capture.tracing.sources import source_of
from protocol.errors import InternalError
from protocol.numerics.types import DType

DEFAULT_REMEDY = (
    "rewrite it with supported operations, or add a rule for it under protocol/capture/lowering/ops"
)
CONSTANT = "make it of float32, int64 or bool, or register it as a buffer of the model in one of these types"
RANDOM = f"draw it when the data are made: {DRAWN}"
GENERATOR = "leave it out: all random numbers are drawn with the state's key"
INTEGERS = (
    "draw them by torch.randint from a range of at most 2^31 integers, all from -2^31 to 2^31 - 1, or when the data "
    "are made"
)
LINEAR_ALGEBRA = (
    "no program has matrix decompositions, inverses or solvers: keep what it gives as a buffer, if it is the same in "
    "every step, or use products alone, as a Newton-Schulz iteration does"
)
REMEDIES = {
    **dict.fromkeys(("binomial", "poisson", "_sample_dirichlet", "_standard_gamma"), RANDOM),
    **dict.fromkeys(("randint", "randint_like", "random"), INTEGERS),
    **dict.fromkeys(("cholesky_inverse", "cholesky_solve", "geqrf", "lu_unpack", "ormqr"), LINEAR_ALGEBRA),
    **dict.fromkeys(("triangular_solve",), LINEAR_ALGEBRA),
}
"""The remedy for operations without a rule, by name; see `remedy_of` for those that are not listed."""


class Unsupported(InternalError):
    """Raised by a rule if this use of the operation has no exact form. `remedy` tells the submitter what to do."""

    remedy: str

    def __init__(self, what: str, remedy: str = DEFAULT_REMEDY) -> None:
        super().__init__(what)
        self.remedy = remedy


def wrong_type(dtype: DType) -> Unsupported:
    """An error for a rule to raise: the operation is not supported for operands of this type."""
    return Unsupported(f"on {dtype.name.lower()}", "convert with .float() first")


def unsupported(node: torch.fx.Node, error: Exception) -> Problem:
    """The refusal for a node for which `error` was raised: the node has no rule, or its rule refuses the
    node, or the program refuses it. The cause of `error` becomes the cause of the refusal.
    """
    remedy = error.remedy if isinstance(error, Unsupported) else DEFAULT_REMEDY
    return Problem(f"{node.target}: {error}", remedy, source_of(node), cause=error.__cause__)


def made_inside(user: torch.fx.Node) -> Problem:
    """The refusal for a tensor literal of a type that no program has. The node `user` takes the literal."""
    return Problem("a tensor made inside the step", CONSTANT, source_of(user))


def remedy_of(name: str) -> str:
    """The remedy for an operation without a rule, given its name without the overload."""
    algebra = name.startswith(("linalg_", "_linalg_"))
    return REMEDIES.get(name, LINEAR_ALGEBRA if algebra else DEFAULT_REMEDY)
