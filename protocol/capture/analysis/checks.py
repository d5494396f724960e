"""Refusals that concern the option `bits`, or integers computed from the committed data.

`require_bits` raises `CaptureError`; the other functions return the `Problem` for their caller to collect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch.fx import Node

from protocol.capture.analysis.indices import Index
from protocol.capture.errors import CaptureError, Problem, raise_any
from protocol.capture.tracing.sources import source_of

SMALLER = (
    "keep integers below 2^31: reduce them with % before they grow, or compute them when the data are made"
)


def require_bits(overrides: Mapping[str, Any], roles: Collection[str]) -> None:
    """Raise `CaptureError` unless `overrides` maps names in `roles` to pairs of bit counts, each 13 or 20."""
    names = ", ".join(roles)
    remedy = f"give two of 13 and 20, as in (20, 13), for one of: {names}"
    if not isinstance(overrides, Mapping):
        raise CaptureError([Problem(f"bits is of type {type(overrides).__name__}", f"pass a dict; {remedy}")])
    raise_any(
        Problem(f"bits for {name!r}: {value!r}", remedy)
        for name, value in overrides.items()
        if name not in roles or not _are_bits(value)
    )


def _are_bits(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(p in (13, 20) for p in value)


def index_out_of_range(node: Node, index: Index, value: int, origin: str) -> Problem:
    """The refusal for an operation `node` whose operand `index` holds `value`, an index that torch does not
    allow. `origin` says where the value comes from.
    """
    what = f"{origin} gives {index.operation} the index {value}; torch allows {index}"
    return Problem(what, "correct the data, or the size of what is indexed", source_of(node))


def index_unbounded(node: Node, index: Index, low: int, high: int, origin: str) -> Problem:
    """The refusal for an operation `node` whose operand `index` may hold any index from `low` to `high`,
    although torch does not allow all of these. `origin` says where the indices come from.
    """
    what = f"{origin} may give {index.operation} any index from {low} to {high}; torch allows {index}"
    return Problem(what, "limit it with .clamp() or % to the size of what is indexed", source_of(node))


def too_wide(node: Node, value: int, origin: str) -> Problem:
    """The refusal for an operation `node` that produces an int64 too large for a program's i32."""
    what = f"{origin} gives {node.target} the result {value}, an int64 beyond 32 bits"
    return Problem(what, SMALLER, source_of(node))


def may_be_too_wide(node: Node, low: int, high: int, origin: str) -> Problem:
    """The refusal for an operation `node` that may produce integers too large for an i32."""
    what = f"{origin} may give {node.target} results from {low} to {high}, int64 beyond 32 bits"
    return Problem(what, SMALLER, source_of(node))


def moving_too_wide(name: str, low: int, high: int) -> Problem:
    """The refusal for a buffer `name` to which another phase may give integers too large for an i32."""
    what = f"another phase may give the buffer {name} integers from {low} to {high}, int64 beyond 32 bits"
    return Problem(what, SMALLER)


def not_examined(node: Node, error: Exception) -> Problem:
    """The refusal for an operation `node` whose integers could not be bounded, because `error` was raised."""
    what = f"{node.target}: on these operands, {type(error).__name__}: {error}"
    return Problem(what, "give it operands of another shape", source_of(node), cause=error)


def refused_by_torch(node: Node, first: int, last: int, error: Exception) -> Problem:
    """The refusal for the dataset's rows `first` to `last`, on which torch raises `error`."""
    what = f"torch refuses rows {first} to {last} of the dataset: {node.target}: {error}"
    return Problem(what, "correct these rows, or what is computed of them", source_of(node))
