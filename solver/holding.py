"""Bundles that the solver holds: fetched once, verified against the terms, kept under ASSAY_HOME and served on.

A submitter may take its own bundle down once a solver has the task; the solver then answers for every root in the terms
(dispute.md section 7).
"""

from __future__ import annotations

from protocol.bundles import Bundle, hold_bundle
from protocol.task import Terms
from solver.desk import Desk

REFETCH_SECONDS = 60.0
"""For a bundle that was held and is damaged now; meanwhile nothing else is done."""


def hold(desk: Desk, terms: Terms, seconds: float = REFETCH_SECONDS) -> Bundle:
    """The task's bundle, from disk or, within some seconds, from the submitter.

    Raises BundleError: then there is nothing to bid on.
    """
    return hold_bundle(desk.home.bundles, terms, desk.limits(seconds))
