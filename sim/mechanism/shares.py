"""Splits of a stake and of an escrow: `protocol.tasks.economics` on arrays (contracts/src/libraries/Shares.sol)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.mechanism.arrays import Amounts


class Slash(NamedTuple):
    """Where slashed stakes go, each shaped as what was given; the parts add up to the stake."""

    rewarded: Amounts
    restored: Amounts
    burned: Amounts


class Settlement(NamedTuple):
    """What one attestation and the solver are paid, by row."""

    each: Amounts
    to_solver: Amounts


def slash(stake: Amounts, reward: Amounts, restitution: Amounts) -> Slash:
    """`protocol.tasks.economics.slash_split`; here `burned` holds both of its burned parts."""
    left = stake - (stake + 3) // 4
    rewarded = np.minimum(reward, left)
    restored = np.minimum(restitution, left - rewarded)
    return Slash(rewarded, restored, stake - rewarded - restored)


def settle(price: Amounts, reserve: Amounts, fee: Amounts, attestations: Amounts) -> Settlement:
    """`protocol.tasks.economics.settle_split`."""
    some = np.maximum(attestations, 1)
    each = np.where(attestations == 0, 0, np.minimum(fee, (reserve + price) // some))
    return Settlement(each, price - np.maximum(0, each * attestations - reserve))
