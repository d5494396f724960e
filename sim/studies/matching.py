"""Assignment of concurrent tasks of several sizes and deadlines to devices of several strengths.

A device of strength s does work of size w in time w / s, so a device can do a task if its strength is at
least the task's need, size over deadline. A unit of work costs s^-economy: if `economy` is above 0, strong
devices are cheap. Asks are costs, and each device has one task at a time. There is no engine and no ledger:
`sim.mechanism.auctions` sells the tasks in turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from sim.engine.simulate import Columns
from sim.mechanism.arrays import Floats
from sim.mechanism.auctions import NO_ASK, Assignment, cheapest, in_turn, weakest

MOST_LOAD: Final = 4
"""The largest load, in tasks per device. At every load, this many tasks are generated per device, and the
first of them are used. So a heavier load keeps the tasks of a lighter load and adds others.
"""
_PURPOSE: Final = 1 << 20
"""A number in the spawn keys of this module's random streams. No chunk of the engine uses it."""


@dataclass(frozen=True)
class Batch:
    """A batch of devices and tasks. `devices` is the number of devices, and `load` is the number of tasks per
    device. Strengths, sizes and deadlines are lognormal. A spread is the standard deviation of their
    logarithm.
    """

    devices: int
    load: float
    economy: float
    strength_spread: float
    size_spread: float
    deadline_spread: float
    worth: float
    """Value of a task of size 1. A device of strength 1 can do such a task for `cost`."""
    cost: float

    @property
    def tasks(self) -> int:
        """Number of tasks, at least one."""
        return max(1, round(self.load * self.devices))


def play(batch: Batch, *, runs: int, seed: np.random.SeedSequence) -> Columns:
    """For each rule, the share of tasks done and the welfare per task. Welfare is the value of the tasks done
    minus their cost.

    `done_most` is the largest share that any assignment can reach. `done_form` is the expected share if the
    cheapest ask wins. It equals `done_most` unless `economy` is above 0. With an `economy` of 0, it has no
    meaning, because all devices that can do a task ask the same. A run is one draw of devices and tasks.
    """
    sizes = _normal(batch.size_spread, runs, MOST_LOAD * batch.devices, seed, 0)[: batch.tasks]
    deadlines = _normal(batch.deadline_spread, runs, MOST_LOAD * batch.devices, seed, 1)[: batch.tasks]
    strength = _normal(batch.strength_spread, runs, batch.devices, seed, 2)
    needs = sizes / deadlines
    costs = batch.cost * sizes[:, None] * strength**-batch.economy
    asks = np.where(strength >= needs[:, None], costs, NO_ASK)
    endless = np.full(sizes.shape, NO_ASK / 2)
    most = most_done(needs, strength)
    columns = {"done_most": most / batch.tasks}
    columns["done_form"] = (
        expected_done(batch, strength) / batch.tasks if batch.economy > 0 else columns["done_most"]
    )
    for name, rule in (("cheapest", cheapest), ("weakest", weakest(strength))):
        result = in_turn(asks, endless, rule)
        columns[f"done_{name}"] = result.sold.mean(axis=0)
        columns[f"welfare_{name}"] = _welfare(batch, sizes, result)
    return columns


def _welfare(batch: Batch, sizes: Floats, result: Assignment) -> Floats:
    gained: Floats = np.where(result.sold, batch.worth * sizes - result.price, 0.0).mean(axis=0)
    return gained


def most_done(needs: Floats, strength: Floats) -> Floats:
    """For each row, the largest number of tasks that the devices can do if each device does at most one. The
    result has shape (rows,).

    `needs` is (tasks, rows), `strength` is (devices, rows). By Hall's theorem, only sets of tasks with too
    few devices limit this number. A device that can do a task can do every easier one, so it is enough to
    check, for each i, the set of the i hardest tasks. Of these, no more can be done than there are devices
    that can do the easiest of them.
    """
    hardest = -np.sort(-needs, axis=0)
    able = (strength[None] >= hardest[:, None]).sum(axis=1)
    ranks = np.arange(1, len(needs) + 1)[:, None]
    lacking = np.maximum(0, ranks - able).max(axis=0)
    return np.asarray(len(needs) - lacking, dtype=np.float64)


def expected_done(batch: Batch, strength: Floats) -> Floats:
    """Mean number of tasks done if the cheapest ask wins, for devices of the given strengths. The result has
    shape (rows,). It holds only if strong devices are cheap.

    Each task then goes to the strongest free device, if that device can do it. When k tasks are done, this
    device is the (k + 1)-th strongest. It can do a task with chance F(s), where s is its strength and F is
    the (lognormal) distribution of needs. So the number of tasks done is a pure birth chain.
    """
    ranked = -np.sort(-strength, axis=0)
    spread = math.hypot(batch.size_spread, batch.deadline_spread)
    able = np.zeros((len(ranked) + 1, ranked.shape[1]))
    able[:-1] = np.vectorize(NormalDist().cdf)(np.log(ranked) / spread) if spread else ranked >= 1
    chance = np.zeros_like(able)
    chance[0] = 1.0
    for _ in range(batch.tasks):
        moved = chance * able
        chance -= moved
        chance[1:] += moved[:-1]
    return np.asarray((chance * np.arange(len(chance))[:, None]).sum(axis=0))


def _normal(spread: float, runs: int, count: int, seed: np.random.SeedSequence, purpose: int) -> Floats:
    """Lognormal numbers, (count, runs). A run's numbers do not depend on the number of runs."""
    key: Sequence[int] = (*seed.spawn_key, _PURPOSE, purpose)
    generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed.entropy, spawn_key=key)))
    return np.asarray(np.exp(spread * generator.standard_normal((runs, count)).T))
