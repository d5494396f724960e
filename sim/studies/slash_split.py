"""The split of a slashed stake: what does a self-challenge cost, and what do verifiers that replay earn?

A conviction pays the reward to the challenger and the restitution to the submitter. Each seat that challenged
gets its fee and the cost of a game. Each seat that attested and does not have the convicted segment gets its
fee. Valid terms limit the sum of all these payments to three quarters of the stake. The rest of the stake
burns. A cheater that is both challenger and submitter, or colludes with both, recovers the reward and the
restitution.

The points form two grids: splits, and delay penalties. At every point, four cases are played. A closed form
is compared with the engine only at the points of one grid. These are the four cases:

- An insider convicts its own solver.
- Honest verifiers convict a cheating solver.
- A solver misses its deadline.
- A cheater with few false segments concedes whatever would be proven against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sim.agents.population import HONEST_SUBMITTER, Population, population
from sim.agents.solvers import Solver, Won, Work
from sim.agents.submitters import Insider, Submitter
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.points import ALIKE, asked, require
from sim.studies.slash_split_reading import (
    PENALTY,
    SPLIT,
    Forms,
    Rows,
    concession,
    cost,
    insured,
    whistleblowers,
)
from sim.studies.study import Answer, Extra, Point, Study, Table
from sim.studies.tables import by_point, mean, points_of, standard_error
from sim.units import TOKEN


@dataclass(frozen=True)
class Quitting(Solver):
    """Takes tasks, does nothing and lets their deadlines pass."""

    name: ClassVar[str] = "quitting"

    def work(self, view: Won) -> Work:
        """Do no work and submit nothing."""
        return self._work(view, 0, effort=0.0, submits=False)


class SlashSplit(Study):
    """Cheaters that are their own challengers and submitters, compared with honest parties."""

    name = "slash_split"
    question = "What does a self-challenge cost, when does it pay, and what do honest whistleblowers earn?"
    runs = 1024
    rounds = 8

    def parameters(self) -> MarketParameters:
        """A market with equal devices, a stake of 1,000 tokens, and a budget above every restitution."""
        return MarketParameters(
            device_spread=0.0, stake=1000 * TOKEN, budget=1000 * TOKEN, retrain_reward=125 * TOKEN
        )

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of two grids: reward by restitution, and reward by delay penalty."""
        return {
            "reward": tuple(tokens * TOKEN for tokens in (0, 25, 50, 75, 100, 125)),
            "restitution": tuple(tokens * TOKEN for tokens in (0, 100, 250, 400, 550)),
            "delay_penalty": tuple(tokens * TOKEN for tokens in (10, 200, 400, 600, 800, 1000)),
            "honest_share": (0.7,),
            "false_share": (0.03,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """Parameters of the cheater with few false segments, which concedes only what would be proven."""
        return {
            "honest_share": Extra(
                "share of the verifiers that replay, against the cheater with few false segments"
            ),
            "false_share": Extra("share of the segments that this cheater invents"),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of two grids: splits, and delay penalties."""
        return asked(self, given, (SPLIT, PENALTY))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """The market of the cheater with few false segments. Raises ParameterError if the closed forms do not
        apply.
        """
        require(self.parameters(), parameters, (*ALIKE, "gas_volatility"))
        return self._people(parameters, Disguised(point["false_share"]), Insider(), point["honest_share"])

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Play all cases at one point. The columns are profits in token units per task, and the rate at which
        the cheater with few false segments is convicted. This cheater, and the honest solver that it is
        compared with, are played for all rounds. The other cases are deterministic, so one round of each is
        enough.
        """
        case = self.case(point)

        def played(solver: Solver, submitter: Submitter, honest: float, rounds: int = 1) -> Columns:
            people = self._people(case.parameters, solver, submitter, honest)
            return simulate(Case(case.parameters, people), runs=runs, rounds=rounds, seed=seed)

        conceding = played(Disguised(1.0), Insider(), 1.0)
        proven = played(Disguised(1.0), HONEST_SUBMITTER, 1.0)
        late = played(Quitting(), HONEST_SUBMITTER, 1.0)
        few = simulate(case, runs=runs, rounds=rounds, seed=seed)
        honest = played(Solver(), HONEST_SUBMITTER, point["honest_share"], rounds)
        alone = conceding["profit_solver_disguised"]
        return {
            "conceding": alone + conceding["profit_submitter"],
            "conceding_challenger": alone + conceding["profit_submitter"] - proven["profit_submitter"],
            "late": late["profit_solver_quitting"] + late["profit_submitter"],
            "whistleblowers": proven["profit_verifier_honest"],
            "whistleblowers_preempted": conceding["profit_verifier_honest"],
            "insured": few["profit_solver_disguised"]
            + few["profit_submitter"]
            - honest["profit_solver_honest"]
            - honest["profit_submitter"],
            "convicted": few["convicted"],
        }

    def answer(self, table: Table) -> Answer:
        """Findings on the cost of a self-challenge, on concessions, on whistleblowers, and on the cheater
        that insures itself, which is the cheater with few false segments.
        """
        points = points_of(self, table)
        names = (
            "conceding",
            "conceding_challenger",
            "late",
            "whistleblowers",
            "whistleblowers_preempted",
            "insured",
        )
        rows = Rows(
            self,
            points,
            [Forms(self.case(point)) for point in points],
            {name: mean(table, name) / TOKEN for name in names},
            {name: standard_error(table, name) / TOKEN for name in names},
            int(by_point(table, "run").shape[1] * table["rounds"][0]),
            table,
        )
        parts = [part(rows) for part in (cost, concession, whistleblowers, insured)]
        return Answer(
            [finding for findings, _ in parts for finding in findings],
            [claim for _, claims in parts for claim in claims],
        )

    def _people(
        self, parameters: MarketParameters, solver: Solver, submitter: Submitter, honest: float
    ) -> Population:
        looking = round(honest * parameters.verifier_count)
        return population(
            [(solver, parameters.solver_count)],
            [(Verifier(), looking), (Trusting(), parameters.verifier_count - looking)],
            submitter=submitter,
        )
