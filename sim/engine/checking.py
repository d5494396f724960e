"""Who looks at a submitted task: drawn verifiers, those drawn in their place, and bystanders."""

from __future__ import annotations

import numpy as np

from sim.agents.bystanders import Passing
from sim.agents.population import Population, spread
from sim.agents.verifiers import Check, Seats
from sim.engine.streams import Stream, Streams
from sim.engine.task import Checks, Looks, Task
from sim.mechanism.arrays import Flags, Floats, Indices
from sim.mechanism.draw import Draw, by_account, complete, distinct, replaced
from sim.parameters import MarketParameters


class Checker:
    """Draws seats in all rows and lets their holders act by their strategies."""

    def __init__(self, parameters: MarketParameters, population: Population, luck: Streams) -> None:
        self.parameters = parameters
        self.population = population
        self.luck = luck
        slots = population.slots
        self._slots = int(slots.sum())
        self._holders = np.repeat(np.arange(len(slots)), slots) if self._slots > len(slots) else None
        self._kinds = spread(population.verifiers, range(len(population.verifiers))).astype(np.int8)
        # Whoever copies comes last, when there is something to copy.
        self._order = sorted(
            enumerate(population.verifiers), key=lambda numbered: numbered[1].strategy.watches
        )

    def check(self, task: Task) -> Checks:
        """Draws are made, and used up, in every row, so that a variant's luck stays in step."""
        parameters, luck = self.parameters, self.luck
        drawn = self.draw()
        who, seats, last = drawn.verifiers, len(drawn.verifiers), parameters.segments
        hit: Flags = drawn.segments.min(axis=0) <= task.work.false
        there = self._there(task, who, luck.outages)
        check = self._act(task, who, hit, luck.checks.uniform(seats), there, Check.nothing(hit.shape))
        for _ in range(parameters.redraws):
            other = self._holding(luck.redraws.below(self._slots, seats))
            silent = ~(check.attests | check.challenges)
            who = np.where(silent, other, who)
            drawn = replaced(drawn, who, silent, last)
            coins = luck.redraws.uniform(seats)
            check = self._act(task, who, hit, coins, silent & self._there(task, who, luck.redraws), check)
        return Checks(drawn, hit, check, self._pass_by(task))

    def draw(self) -> Draw:
        """V seats in all rows."""
        parameters, luck = self.parameters, self.luck
        who = self._holding(luck.draws.below(self._slots, parameters.verifiers))
        segments = distinct(
            luck.draws.uniform(parameters.segments_per_verifier, parameters.verifiers), parameters.segments
        )
        return complete(who, segments, parameters.segments)

    def _holding(self, slots: Indices) -> Indices:
        """Who holds the drawn slots."""
        return slots if self._holders is None else self._holders.take(slots)

    def _there(self, task: Task, who: Indices, outages: Stream) -> Flags:
        """Seats whose holders are online, where a task is: an account is there for all of its seats or for none."""
        if not self.parameters.downtime:
            return task.live
        online: Flags = by_account(who, outages.uniform(len(who))) >= self.parameters.downtime
        return online & task.live

    def _act(self, task: Task, who: Indices, hit: Flags, luck: Floats, there: Flags, before: Check) -> Check:
        """What was done `before`, and what the holders of the seats do that are `there`, (V, rows)."""
        parameters = self.parameters
        served, others = np.empty_like(hit), np.zeros_like(hit)
        served[:] = task.work.serves
        check = before
        kinds = self._kinds.take(who)
        for number, group in self._order:
            if group.strategy.watches:
                others[:] = check.attests.any(axis=0)
            acts = group.strategy.check(
                Seats(parameters, served, hit, others, luck, task.prices.gas, task.prices.work)
            )
            check = check | acts.where((kinds == number) & there)
        return check

    def _pass_by(self, task: Task) -> Looks | None:
        """What bystanders do; each that replays replays a segment that it draws itself."""
        count = self.population.bystander_count
        if not count:
            return None
        segment = 1 + self.luck.bystanders.below(self.parameters.segments, count)
        hit: Flags = segment <= task.work.false
        served = np.broadcast_to(task.work.serves, hit.shape)
        luck = self.luck.bystanders.uniform(count)
        replays, games = np.zeros_like(hit), np.zeros(hit.shape, dtype=np.int64)
        for group in self.population.bystanders:
            mine = group.members
            view = Passing(self.parameters, served[mine], hit[mine], luck[mine])
            replays[mine], games[mine] = group.strategy.look(view)
        return Looks(replays & task.live, games * task.live, hit)
