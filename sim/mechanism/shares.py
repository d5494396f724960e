"""The split of a slashed stake: `protocol.tasks.economics` on arrays (contracts/src/libraries/Shares.sol)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.mechanism.arrays import Amounts


class Slash(NamedTuple):
    """Where slashed stakes go, each shaped as what was given; the parts add up to the stake."""

    rewarded: Amounts
    restored: Amounts
    burned: Amounts


def slash(stake: Amounts, reward: Amounts, restitution: Amounts) -> Slash:
    """`protocol.tasks.economics.slash_split`; here `burned` holds both of its burned parts."""
    left = stake - (stake + 3) // 4
    rewarded = np.minimum(reward, left)
    restored = np.minimum(restitution, left - rewarded)
    return Slash(rewarded, restored, stake - rewarded - restored)
