"""Playing a case: many runs of one market, in blocks of rows that fit the cache, and what came out of each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np

from sim.agents.population import Population
from sim.engine.market import Market
from sim.engine.streams import streams
from sim.errors import SimError
from sim.mechanism.arrays import Floats
from sim.mechanism.auctions import Auction, first_price
from sim.mechanism.booking import FIRST_SOLVER
from sim.setting import Setting

BLOCK: Final = 1_000
"""Rows of one block: 221 accounts of 8 bytes in four tables are 7 MB, bids and draws of a round half a MB."""


class Unbalanced(SimError):
    """The ledger does not add up: a defect of the engine."""


@dataclass(frozen=True)
class Case:
    """One question to the engine."""

    setting: Setting
    population: Population
    auction: Auction = field(default=first_price)


Columns = Mapping[str, Floats]
"""Results by name, one number for each run: shares of tasks, and token units for each task."""


def simulate(case: Case, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
    """Play `runs` markets for `rounds` tasks each.

    Block b uses the seed's child b, so that the first runs stay the same when more are asked for. Returns columns of
    length `runs`: `settled`, `convicted` and the other counts of `Tally` as shares of all tasks, `price` and `fees` for
    each settled task, `burned` for each task, and `profit_<kind>_<strategy>` of all members together for each task.
    """
    parts = []
    for number, start in enumerate(range(0, runs, BLOCK)):
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        market = Market(
            case.setting, case.population, min(BLOCK, runs - start), rounds, streams(own), case.auction
        )
        for _ in range(rounds):
            market.play()
        if not market.ledger.balanced():
            raise Unbalanced(
                f"expected a ledger that adds up, got one that does not (seed {seed}); report this as a defect"
            )
        parts.append(_columns(market, rounds))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _columns(market: Market, rounds: int) -> dict[str, Floats]:
    tally = market.tally
    settled = np.maximum(tally.settled, 1)
    columns = {
        known.name: getattr(tally, known.name) / rounds
        for known in fields(tally)
        if known.name not in ("paid", "fees")
    }
    columns["price"] = tally.paid / settled
    columns["fees"] = tally.fees / settled
    columns["burned"] = market.ledger.burned / rounds
    profits = market.profits() / rounds
    columns["profit_submitter"] = profits[:, 0]
    solvers, verifiers = np.split(profits[:, FIRST_SOLVER:], [market.population.solver_count], axis=1)
    for of_solvers in market.population.solvers:
        columns[f"profit_solver_{of_solvers.strategy.name}"] = solvers[:, of_solvers.members].sum(axis=1)
    for of_verifiers in market.population.verifiers:
        name = f"profit_verifier_{of_verifiers.strategy.name}"
        columns[name] = verifiers[:, of_verifiers.members].sum(axis=1)
    return columns
