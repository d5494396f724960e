"""Helpers that studies share: checks of points, layouts of results, and wording. `sim.studies.grids` makes
the points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.parameters import KNOWN, MarketParameters
from sim.studies.grids import Grid, several
from sim.studies.study import Claim, Finding, Point, Study

ALIKE = (
    "device_spread",
    "device_range",
    "crash_rate",
    "downtime",
    "silence_rate",
    "arrival_rate",
    "gas_volatility",
    "token_volatility",
    "solver_capital",
    "overlap",
    "capital_rate",
    "beacon_stops",
    "look_chance",
)
"""Parameters for which most closed forms have no term."""


def require(own: MarketParameters, parameters: MarketParameters, names: Sequence[str] = ALIKE) -> None:
    """Raise ParameterError if a point changes one of the parameters `names`, for which the closed forms have
    no term.
    """
    for name in names:
        kept, given = getattr(own, name), getattr(parameters, name)
        if given != kept:
            show = KNOWN[name].metadata["unit"].format
            raise ParameterError(
                f"{name}: expected {show(kept)}, for the closed forms have no term for it, got {show(given)}; "
                f"leave it out"
            )


def asked(study: Study, given: Mapping[str, Sequence[float]], grids: Sequence[Grid]) -> list[Point]:
    """Each grid lists the parameters that it varies. Returns the points of the grids that list at least one
    parameter given by the operator. If no grid does, returns the points of all grids.
    """
    names = {study.known(name) for name in given}
    return several(study, given, [one for one in grids if names & set(one)] or grids)


def grid(points: Sequence[Point], values: Floats, x: str, y: str) -> tuple[Floats, Floats, Floats]:
    """Lay out `values` in a table with parameter `x` across and parameter `y` upwards. Returns the values of
    `x` (across), those of `y` (up), and the table, (len(up), len(across)). Places without a point are NaN.
    """
    across, up = (np.array(sorted({float(point[name]) for point in points})) for name in (x, y))
    laid = np.full((len(up), len(across)), np.nan)
    for point, value in zip(points, values):
        laid[np.searchsorted(up, point[y]), np.searchsorted(across, point[x])] = value
    return across, up, laid


def crossing(x: Floats, y: Floats, error: Floats) -> tuple[float, float] | None:
    """The place at which `y` first crosses zero, and the standard error of this place. The place is found on
    a straight line through the two points around the change of sign.

    None if the sign does not change.
    """
    changes = np.flatnonzero((y[1:] > 0) != (y[:-1] > 0))
    if not changes.size:
        return None
    i = int(changes[0])
    slope = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
    share = y[i] / (y[i] - y[i + 1])
    spread = np.hypot((1 - share) * error[i], share * error[i + 1])
    return float(x[i] - y[i] / slope), float(abs(spread / slope))


def where(study: Study, point: Point, *names: str) -> str:
    """A point's values in words."""
    return ", ".join(f"{name} {study.unit(name).format(point[name])}" for name in names or point)


def agreement(claims: Sequence[Claim]) -> Finding:
    """A finding on the agreement with theory, for tables in which all grids are too small for other findings."""
    holding = sum(claim.holds for claim in claims)
    return Finding(
        f"Engine and theory agree within 4 standard errors on {holding:,} of {len(claims):,} numbers"
    )


def of_both(share: float, parameters: MarketParameters) -> int:
    """The verifiers are divided into two kinds. Returns how many are of the first kind: the given share of
    all verifiers, rounded, but so that each kind has at least one verifier.

    Raises ParameterError if there is only one verifier.
    """
    if parameters.verifier_count < 2:
        raise ParameterError(
            f"verifier_count: expected at least 2, for two kinds of verifiers are compared, "
            f"got {parameters.verifier_count}; raise it"
        )
    return min(max(round(share * parameters.verifier_count), 1), parameters.verifier_count - 1)
