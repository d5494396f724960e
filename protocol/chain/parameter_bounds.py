"""Bounds on a deployment's parameters: those of TermsCheck.checkParameters
(contracts/src/libraries/TermsCheck.sol).

The market's constructor checks them too, but only after other contracts have been paid for, and the proxy
that creates the market hides the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.chain.parameters import AMOUNTS, Parameters, ParametersError
from protocol.node.words import tokens
from protocol.tasks.amounts import RATE_UNIT, YEAR
from protocol.tasks.task import ESCROW_DRAWS, MAX_JURORS, MAX_LOCK

_UINT32: Final = (1 << 32) - 1
_UINT64: Final = (1 << 64) - 1
MAX_LEVEL: Final = 15
"""Highest level of a registration. A registration of this level has a stake of 2^15 units."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The minimum and the maximum of a field."""

    field: str
    least: int
    most: int


def bounds(parameters: Parameters) -> Iterator[Bound]:
    """The bounds in the contract's order."""
    clock = parameters.min_clock
    yield Bound("min_clock", 1, _UINT32)
    yield Bound("max_clock", clock, _UINT32)
    yield Bound("min_period", 1, _UINT32 - 1)
    yield Bound("max_period", parameters.min_period + 2 * clock, _UINT32)
    yield Bound("opening_period", clock, _UINT32)
    yield Bound("draw_delay", 1, _UINT32)
    # Otherwise one silent seat could end a task: the stall period must have room for all draws.
    yield Bound("stall_period", ESCROW_DRAWS * (parameters.min_period + parameters.draw_delay), _UINT32)
    # An account that resigned can still be drawn by a round that was fixed before. It is liable until that
    # task can be ended.
    yield Bound("unbonding_period", parameters.draw_delay + parameters.stall_period, _UINT32)
    yield Bound("stake_unit", 1, MAX_LOCK >> MAX_LEVEL)
    yield Bound("draw_fee", 0, parameters.stake_unit)
    # Otherwise, at the shortest clock, the bond could exceed its limit, a quarter of the greatest stake.
    yield Bound("game_floor", 1, MAX_LOCK // 64)
    yield Bound("capital_rate", 0, min(RATE_UNIT, RATE_UNIT * YEAR // max(32 * clock, 1)))
    yield Bound("min_jurors", 1, MAX_JURORS)
    yield Bound("data_fee", 0, _UINT64)


def broken_bound(parameters: Parameters) -> Bound | None:
    """The first bound that the parameters break; None if they are valid."""
    return next(
        (
            bound
            for bound in bounds(parameters)
            if not bound.least <= getattr(parameters, bound.field) <= bound.most
        ),
        None,
    )


def require_within_bounds(parameters: Parameters) -> None:
    """Raises ParametersError for the first field that breaks its bounds."""
    if (bound := broken_bound(parameters)) is not None:
        raise ParametersError(
            f"parameter {bound.field}",
            expected=f"{_shown(bound.field, bound.least)} to {_shown(bound.field, bound.most)}",
            got=_shown(bound.field, getattr(parameters, bound.field)),
            remedy="correct it in the file of parameters",
        )


def _shown(field: str, value: int) -> str:
    """A value as an error message shows it: amounts in tokens, other fields as in the file."""
    return tokens(value) if field in AMOUNTS else f"{value:,}"
