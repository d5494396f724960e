"""Plays a case: many runs of one market, in blocks of rows that fit the cache, with a result per run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np

from sim.agents.population import Population
from sim.engine.market import Market
from sim.engine.streams import CHUNK, streams
from sim.errors import SimError
from sim.mechanism.arrays import Floats
from sim.mechanism.auctions import Auction, descending
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.parameters import MarketParameters

CHUNKS: Final = 8
"""Chunks of runs played at once. With fewer, the overhead of a round's 200 NumPy calls exceeds their work."""
MOST_CELLS: Final = 1 << 20
"""Maximum cells of a table of accounts, which takes 8 MB. With many accounts, fewer chunks are played at once."""


class Unbalanced(SimError):
    """The ledger does not add up: a defect of the engine."""


@dataclass(frozen=True)
class Case:
    """A market for the engine to play."""

    parameters: MarketParameters
    population: Population
    auction: Auction = field(default=descending)


Columns = Mapping[str, Floats]
"""Results by name. Each has one number per run: a count or an amount in token units, averaged over tasks."""


def block(people: Population) -> int:
    """Number of rows played at once: one or more whole chunks of runs. Results do not depend on it."""
    accounts = FIRST_SOLVER + people.solver_count + people.verifier_count + people.bystander_count
    return CHUNK * max(1, min(CHUNKS, MOST_CELLS // (CHUNK * accounts)))


def simulate(case: Case, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
    """Play `runs` markets for `rounds` tasks each.

    A run's random numbers depend only on the seed and the run's number: asking for more runs does not change
    the first ones. Returns columns of length `runs`. `posted` is a share of the rounds. `settled`,
    `convicted` and the other counts of `Tally` are per posted task; `price` and `fees` are per settled task.
    `burned` and `profit_<kind>_<strategy>` are per posted task; such a profit is the sum over all members
    with the strategy. The submitter's profit is `profit_submitter`.
    """
    parts = []
    most = block(case.population)
    for first in range(0, runs, most):
        rows = min(most, runs - first)
        random = streams(seed, rows, first)
        market = Market(case.parameters, case.population, rows, rounds, random, case.auction)
        for _ in range(rounds):
            market.play()
        if not market.books.ledger.balanced():
            raise Unbalanced(
                f"expected a ledger that adds up, got one that does not (seed {seed}); report this as a defect"
            )
        parts.append(_columns(market, rounds))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _columns(market: Market, rounds: int) -> dict[str, Floats]:
    books, people, tally = market.books, market.population, market.books.tally
    tasks, settled = np.maximum(tally.posted, 1), np.maximum(tally.settled, 1)
    columns = {
        known.name: getattr(tally, known.name) / tasks
        for known in fields(tally)
        if known.name not in ("paid", "fees")
    }
    columns["posted"] = tally.posted / rounds
    columns["price"] = tally.paid / settled
    columns["fees"] = tally.fees / settled
    columns["burned"] = books.ledger.burned / tasks
    profits = books.profits()
    columns["profit_submitter"] = profits[SUBMITTER] / tasks
    kinds = (
        ("solver", books.solvers, people.solvers),
        ("verifier", books.verifiers, people.verifiers),
        ("bystander", books.bystanders, people.bystanders),
    )
    for kind, accounts, groups in kinds:
        for group in groups:
            name = f"profit_{kind}_{group.strategy.name}"
            of_group = profits[accounts][group.members].sum(axis=0) / tasks
            columns[name] = columns[name] + of_group if name in columns else of_group
    return columns
