"""Bounds that a deployment's parameters set on terms, as in TermsCheck.check.

The market refuses terms that break a bound (contracts/src/libraries/TermsCheck.sol), so they are checked here
before they are sent. `protocol.tasks.task.Terms` checks the bounds that hold under every deployment.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.parameter_bounds import MAX_LEVEL, Bound
from protocol.chain.parameters import Parameters
from protocol.tasks.amounts import least_bond, least_seat_lock
from protocol.tasks.task import ESCROW_DRAWS, JURY_SHARE, LINE, MAX_JURORS, MAX_LOCK, Terms, TermsError, shown


def bounds(terms: Terms, parameters: Parameters) -> Iterator[Bound]:
    """The bounds in the contract's order. Amounts are token units, periods seconds."""
    least, most = parameters.min_period, parameters.max_period
    yield Bound("bidding_period", least, most)
    yield Bound("extension", least, terms.bidding_period)
    yield Bound("training_period", least, most)
    # Otherwise one silent seat could stall the task: the stall period must have room for all draws.
    longest = parameters.stall_period // ESCROW_DRAWS - parameters.draw_delay
    yield Bound("attest_period", least, min(most, longest))
    yield Bound("move_time", least, terms.attest_period)
    yield Bound("challenge_period", terms.attest_period + 2 * parameters.min_clock, most)
    yield Bound("clock", parameters.min_clock, parameters.max_clock)
    yield Bound("replay_allowance", 0, most)
    carried = LINE * terms.attest_period // (terms.segments_per_verifier + 2)
    yield Bound("state_bytes", 1, min(carried, LINE * terms.move_time // 2))
    least_lock = least_seat_lock(terms.seat_fee, parameters.draw_fee)
    yield Bound("seat_lock", least_lock, parameters.stake_unit << MAX_LEVEL)
    yield Bound("game_cost", parameters.game_floor, MAX_LOCK)
    if terms.jurors:
        yield Bound("jurors", parameters.min_jurors, MAX_JURORS)
        yield Bound("stake", JURY_SHARE * (terms.audit_fee + parameters.draw_fee), MAX_LOCK)
    bond = least_bond(terms.game_cost, terms.stake, parameters.capital_rate, terms.game_time)
    yield Bound("bond", bond, terms.stake // 4)


def require_within_bounds(terms: Terms, parameters: Parameters) -> None:
    """Raises TermsError for the first field that breaks its bounds."""
    for bound in bounds(terms, parameters):
        value = getattr(terms, bound.field)
        if not bound.least <= value <= bound.most:
            expected = (
                f"{shown(bound.field, bound.least)} to {shown(bound.field, bound.most)} on this deployment"
            )
            raise TermsError(bound.field, expected, shown(bound.field, value))
