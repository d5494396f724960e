"""Counts of events, by row."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sim.mechanism.arrays import Amounts


@dataclass
class Tally:
    """Counts of tasks and other events, and sums of amounts. Each field has shape (rows,)."""

    posted: Amounts
    unsold: Amounts
    expired: Amounts
    convicted: Amounts
    void: Amounts
    """Tasks with a seat that could not be filled."""
    stalled: Amounts
    """Tasks that had no conviction, and that either were never drawn or were not fully attested by the end of
    the stall period.
    """
    settled: Amounts
    false: Amounts
    """Submitted tasks that have false segments or are not served."""
    escaped: Amounts
    """False tasks that settled nevertheless."""
    dismissed: Amounts
    """Challenges that were lost."""
    redrawn: Amounts
    """Draws of seats after the first draw of a task."""
    silent: Amounts
    """Accounts that lost part of their stake for silence."""
    looks: Amounts
    """Second looks in which the looker attested or challenged."""
    caught: Amounts
    """Number of locks that were taken because of a look. Each was the lock of a seat or of another look."""
    paid: Amounts
    """Prices paid to solvers, in token units."""
    fees: Amounts
    """Fees paid to verifiers, in token units."""

    @classmethod
    def empty(cls, rows: int) -> Tally:
        """A tally of zeros."""
        return cls(*(np.zeros(rows, dtype=np.int64) for _ in fields(cls)))
