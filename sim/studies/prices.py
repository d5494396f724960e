"""The price that theory predicts for the engine's bidders if their devices are alike. Their asks are then
uniformly distributed, because their markups are.
"""

from __future__ import annotations

from sim.parameters import MarketParameters
from sim.theory import Market, winning_price


def expected_price(parameters: MarketParameters, effort: float = 1.0) -> float:
    """Mean price of a sold task, in token units. `effort` is the share of the honest cost that bidders expect
    to spend.

    Markups are uniform from 0 to twice the mean, so asks are uniform above the cost.
    """
    least = parameters.training_cost * effort
    dearest = least * (1 + 2 * parameters.markup)
    return winning_price(Market(parameters.solver_count, least, dearest, parameters.budget))
