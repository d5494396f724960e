"""Compares a bundle with its terms. The submitter computes the fields that follow from the bundle; everyone
else computes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.tasks.bundles.errors import BundleMismatch
from protocol.tasks.task import Terms

if TYPE_CHECKING:
    from protocol.tasks.bundles.bundle import Bundle


def committed_terms(bundle: Bundle) -> dict[str, Any]:
    """The fields of Terms that follow from a bundle. `bundle_hash` and `bundle` are not included, because
    they identify and locate the bundle. All other fields of Terms concern the market, and are not included
    either.
    """
    return {
        "program_id": bundle.step.program.id,
        "constants_root": bundle.constants_tree.root,
        "initial_state": bundle.state_tree.root,
        "constants": len(bundle.constant_roots),
        "state_tensors": len(bundle.state),
        "step_operations": bundle.cost.operations,
        "state_bytes": bundle.step.state_bytes,
        "arithmetic": bundle.arithmetic,
    }


def require_terms(bundle: Bundle, terms: Terms) -> None:
    """Raise BundleMismatch, naming the field, if the terms differ from the bundle. Bidders call this first."""
    for name, due in committed_terms(bundle).items():
        promised = getattr(terms, name)
        if promised != due:
            raise BundleMismatch(
                f"terms, {name}",
                expected=due.hex() if isinstance(due, bytes) else due,
                got=promised.hex() if isinstance(promised, bytes) else promised,
                remedy="do not take this task: its terms misstate the work",
            )
