"""The amounts recommended for a task under the recommended deployment: `protocol.tasks.amounts` for `sim`.

Besides budget and segments, the amounts depend on a setting that is fixed here: an L1's clocks, three days of
training, and five days from the draw to the settlement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocol.chain.parameters import RECOMMENDED
from protocol.chain.recommendation import RULES, setting
from protocol.tasks.amounts import Amounts, Setting, TrustPrice, derive, trust_price

DAY: Final = 86_400
"""A day in seconds."""


def setting_of(segments: int, budget: int) -> Setting:
    """The setting of a task with this budget, in the chain's units."""
    return setting(
        RECOMMENDED,
        budget=budget,
        segments=segments,
        training_period=3 * DAY,
        challenge_period=5 * DAY,
        game_time=RECOMMENDED.max_clock,
    )


def recommended(segments: int, budget: int, given: Mapping[str, int] | None = None) -> Amounts:
    """The task's amounts, in the chain's units; amounts in `given` are kept. Raises NoRecommendation."""
    return derive(setting_of(segments, budget), RULES, given)


def trust(segments: int, budget: int) -> TrustPrice:
    """The price of trust in a task with the recommended amounts, in the chain's units."""
    return trust_price(setting_of(segments, budget), RULES, recommended(segments, budget))
