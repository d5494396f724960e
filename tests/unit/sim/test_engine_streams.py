"""Random numbers follow from the seed; variants share them, and more runs do not change the first runs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sim.agents.bystanders import Bystander
from sim.agents.population import Population, population
from sim.agents.solvers import Lazy, Noisy, Solver
from sim.agents.submitters import Shill
from sim.agents.verifiers import Mixing, Verifier
from sim.engine import simulate as simulating
from sim.engine import streams as streaming
from sim.engine.simulate import Case, Columns, block, simulate
from sim.engine.streams import CHUNK, Streams, streams
from sim.mechanism.arrays import Amounts
from sim.mechanism.auctions import Assignment, cheapest
from sim.parameters import MarketParameters
from sim.units import TOKEN

EVERYTHING = MarketParameters(
    downtime=0.1,
    crash_rate=0.1,
    silence_rate=0.1,
    arrival_rate=0.9,
    gas_volatility=0.1,
    token_volatility=0.1,
    redraws=2,
    beacon_stops=0.5,
)
"""Parameters that, together with `PEOPLE`, use every stream of random numbers, except the stream for looks."""
PEOPLE = population(
    [(Solver(), 4), (Lazy(0.3), 3), (Noisy(0.2), 3)],
    [(Verifier(), 10), (Mixing(0.5), 10)],
    [(Bystander(0.3), 2)],
    Shill(0.3, 1.2),
)


def play(
    runs: int,
    seed: int = 1,
    parameters: MarketParameters = EVERYTHING,
    people: Population = PEOPLE,
    rounds: int = 5,
) -> Columns:
    return simulate(Case(parameters, people), runs=runs, rounds=rounds, seed=np.random.SeedSequence(seed))


def same(one: Columns, other: Columns) -> bool:
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def asks_of(parameters: MarketParameters, people: Population = PEOPLE) -> list[Amounts]:
    """The asks of each round."""
    seen: list[Amounts] = []

    def auction(asks: Amounts, budget: Amounts) -> Assignment:
        seen.append(asks.copy())
        return cheapest(asks, budget)

    simulate(Case(parameters, people, auction), runs=20, rounds=5, seed=np.random.SeedSequence(1))
    return seen


def test_the_same_seed_gives_the_same_results() -> None:
    assert same(play(30), play(30))
    assert not same(play(30), play(30, seed=2))


def test_a_seed_is_not_used_up() -> None:
    seed = np.random.SeedSequence(5)
    case = Case(EVERYTHING, PEOPLE)
    first = simulate(case, runs=9, rounds=3, seed=seed)
    assert same(first, simulate(case, runs=9, rounds=3, seed=seed))
    assert not same(first, simulate(case, runs=9, rounds=3, seed=seed.spawn(1)[0]))


def test_the_first_runs_stay_when_more_are_asked_for() -> None:
    many = play(40)
    for fewer in (1, 7, 39):
        assert same(play(fewer), {name: column[:fewer] for name, column in many.items()})


def test_runs_across_the_borders_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are in chunks of 4 and blocks of 8. Each chunk has its own random numbers, and the size of
    blocks does not change results.
    """
    monkeypatch.setattr(streaming, "CHUNK", 4)
    monkeypatch.setattr(simulating, "block", lambda _: 8)
    many = play(20)
    for fewer in (1, 3, 4, 5, 7, 8, 9, 16, 17):
        assert same(play(fewer), {name: column[:fewer] for name, column in many.items()})
    chunks = np.split(many["profit_submitter"], 5)
    assert all((one != other).any() for one, other in combinations(chunks, 2))
    for rows in (4, 12, 100):
        monkeypatch.setattr(simulating, "block", lambda _, rows=rows: rows)
        assert same(play(20), many)


def test_a_whole_block_and_one_more() -> None:
    rows = 2 * CHUNK
    many_verifiers = replace(PEOPLE, verifiers=population([(Solver(), 1)], [(Verifier(), 1000)]).verifiers)
    assert block(many_verifiers) == rows
    many = play(rows + 1, people=many_verifiers, rounds=2)
    assert same(
        play(rows, people=many_verifiers, rounds=2), {name: column[:rows] for name, column in many.items()}
    )
    assert len(many["settled"]) == rows + 1


@pytest.mark.parametrize(
    ("verifiers", "rows"), [(1, 8 * CHUNK), (200, 8 * CHUNK), (900, 2 * CHUNK), (100_000, CHUNK)]
)
def test_a_block_takes_no_more_memory_with_more_accounts(verifiers: int, rows: int) -> None:
    people = population([(Solver(), 20)], [(Verifier(), verifiers)])
    assert block(people) == rows
    assert rows == CHUNK or 8 * rows * (2 + 20 + verifiers) <= 1 << 23


@pytest.mark.parametrize(
    "changed",
    [
        {"verifiers": 6},
        {"segments_per_verifier": 1},
        {"segments": 50},
        {"stake": 300 * TOKEN, "delay_penalty": 0},
        {"downtime": 0.5},
        {"crash_rate": 0.9},
        {"silence_rate": 1.0},
        {"beacon_stops": 1.0},
        {"redraws": 5},
        {"arrival_rate": 1.0},
        {"verifier_count": 9},
    ],
)
def test_a_variant_of_the_audit_leaves_bids_as_they_are(changed: dict[str, float]) -> None:
    plain, variant = asks_of(EVERYTHING), asks_of(EVERYTHING.with_values(changed))
    assert all((one == other).all() for one, other in zip(plain, variant))


def test_other_verifiers_leave_bids_as_they_are() -> None:
    others = replace(PEOPLE, verifiers=population([(Solver(), 1)], [(Mixing(0.1), 50)]).verifiers)
    assert all((one == other).all() for one, other in zip(asks_of(EVERYTHING), asks_of(EVERYTHING, others)))


def test_every_stream_has_numbers_of_its_own() -> None:
    luck = streams(np.random.SeedSequence(3), 4)
    first = {name: getattr(luck, name).uniform()[0] for name in Streams.__dataclass_fields__}
    assert len(set(first.values())) == len(first)


def test_whole_numbers_are_uniform_and_within_bounds() -> None:
    found = streams(np.random.SeedSequence(3), 2000).draws.below(7, 50)
    counts = np.bincount(found.ravel(), minlength=7)
    assert len(counts) == 7
    expected = found.size / 7
    assert (
        (counts - expected) ** 2
    ).sum() / expected < 6 + 4 * 12**0.5  # Chi-square of 6: mean, 4 deviations.


def test_more_rounds_do_not_change_what_is_bid_before() -> None:
    """Deposits grow with the number of rounds, but no decision depends on them."""
    seen: list[list[Amounts]] = []
    for rounds in (2, 6):
        asks: list[Amounts] = []

        def auction(table: Amounts, budget: Amounts, asks: list[Amounts] = asks) -> Assignment:
            asks.append(table.copy())
            return cheapest(table, budget)

        simulate(Case(EVERYTHING, PEOPLE, auction), runs=5, rounds=rounds, seed=np.random.SeedSequence(1))
        seen.append(asks)
    assert all((one == other).all() for one, other in zip(*seen))
