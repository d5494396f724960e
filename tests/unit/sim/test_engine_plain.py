"""The engine against the same market in plain Python, which plays one task and agent at a time."""

from typing import Any

import numpy as np
import pytest

from benchmarks import simulation
from benchmarks.simulation_plain import FIRST_SOLVER, play
from sim.agents.population import population
from sim.agents.solvers import Lazy, Solver
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, simulate
from sim.parameters import MarketParameters
from sim.units import TOKEN

RUNS, ROUNDS = 40, 100
ENDS = ("settled", "convicted", "escaped", "unsold")


@pytest.mark.parametrize(
    ("changed", "honest", "share"),
    [
        ({}, 140, 0.1),
        ({}, 200, 0.0),
        ({"segments": 5, "verifiers": 8, "segments_per_verifier": 3, "verifier_count": 9}, 3, 0.2),
        ({"stake": 250 * TOKEN, "budget": 62 * TOKEN, "restitution": 62 * TOKEN, "segments": 8}, 60, 0.01),
        ({"audit_fee": 9 * TOKEN, "verifiers": 2, "solver_count": 1, "segments": 4}, 100, 1.0),
    ],
)
def test_engine_and_plain_model_agree(changed: dict[str, Any], honest: int, share: float) -> None:
    """How tasks end, the burned tokens, and the profits agree within 4 standard errors. The profits of rubber
    stamps are not compared.
    """
    parameters = MarketParameters().with_values(changed)
    solver = Lazy(share) if share else Solver()
    people = population(
        [(solver, parameters.solver_count)],
        [(Verifier(), honest), (Trusting(), parameters.verifier_count - honest)],
    )
    engine = simulate(Case(parameters, people), runs=2048, rounds=20, seed=np.random.SeedSequence(3))
    false = solver.false(parameters) if isinstance(solver, Lazy) else 0
    terms = {**simulation.terms(), **{name: getattr(parameters, name) for name in changed}}
    terms |= {"honest_verifiers": honest, "false": false}
    markets = [play(terms, ROUNDS, seed) for seed in range(RUNS)]
    plain = {end: np.array([market.ends[end] / ROUNDS for market in markets]) for end in ENDS}
    profits = np.array([np.subtract(m.free, m.deposits) + m.outside for m in markets]) / ROUNDS
    verifiers = FIRST_SOLVER + parameters.solver_count
    plain["profit_submitter"] = profits[:, 0]
    plain[f"profit_solver_{solver.name}"] = profits[:, FIRST_SOLVER:verifiers].sum(axis=1)
    plain["profit_verifier_honest"] = profits[:, verifiers : verifiers + honest].sum(axis=1)
    plain["burned"] = np.array([market.burned / ROUNDS for market in markets])
    for name, found in plain.items():
        error = np.hypot(found.std() / RUNS**0.5, engine[name].std() / 2048**0.5)
        assert abs(found.mean() - engine[name].mean()) <= 4 * error + 1e-9 * TOKEN, name
