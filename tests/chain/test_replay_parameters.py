"""Replays of random markets: a seed chooses amounts (zero and the bounds included), sizes and participants."""

from __future__ import annotations

import random

import pytest

from sim.agents.bystanders import Bystander, Forgetful, Griefer, Retrainer
from sim.agents.population import Population, population
from sim.agents.solvers import Crashing, Lazy, Noisy, Skipper, Solver
from sim.agents.submitters import Challenging, Insider, Shill, Submitter, Vanishing
from sim.agents.verifiers import Absent, Accusing, Colluding, Copying, Mixing, Trusting, Verifier
from sim.parameters import MarketParameters
from sim.replay.scenario import Bluffing, Scenario
from sim.units import TOKEN
from tests.chain.conftest import Replayed

pytestmark = pytest.mark.chain


def people(luck: random.Random) -> Population:
    """Two to four solvers, one to four verifiers, up to three bystanders, and a submitter, all chosen at
    random. Each verifier has one, two or four slots.
    """
    solvers = [Solver(), Bluffing(), Crashing(rate=0.4), Lazy(share=0.7), Noisy(rate=0.5), Skipper()]
    verifiers = [Verifier(), Absent(), Accusing(rate=0.4), Colluding(), Copying(), Mixing(0.5), Trusting()]
    submitters = [
        Submitter(),
        Submitter(),
        Shill(0.3, 1.0),
        Vanishing(rate=0.3),
        Challenging(games=2),
        Insider(),
    ]
    bystanders = [
        Bystander(chance=0.5),
        Griefer(chance=0.4, games=2),
        Forgetful(chance=0.3),
        Retrainer(chance=0.7),
    ]
    return population(
        [(each, 1) for each in luck.sample(solvers, luck.randint(2, 4))],
        [(Verifier(), luck.randint(0, 1))]
        + [(each, 1, luck.choice([1, 2, 4])) for each in luck.sample(verifiers, luck.randint(1, 3))],
        [(each, 1) for each in luck.sample(bystanders, luck.randint(0, 3))],
        luck.choice(submitters),
    )


def parameters(luck: random.Random, everybody: Population, *, looks: bool) -> MarketParameters:
    """Random parameters. An amount may be zero, one unit, a few units or many tokens. The stake is the
    smallest that the contracts accept, or far larger. With `looks`, every segment of a seat gets a look.
    """

    def some(*more: int) -> int:
        return luck.choice([0, 1, luck.randint(2, 99), luck.randint(1, 300) * TOKEN, *more])

    segments, verifiers = luck.randint(1, 4), luck.randint(1, 3)
    each, fee, draw_fee = luck.randint(1, segments), some(), some()
    reward, retrain, cost = some(), some(), some()
    budget = luck.choice([100 * TOKEN, 150 * TOKEN])
    restitution, bond = luck.choice([0, 1, budget]), 2 * cost + luck.choice([0, some()])
    looked = verifiers * each if looks else 0
    owed = max(reward, retrain) + verifiers * (cost + each * fee) + looked * (cost + fee) + restitution
    # The least that the contracts accept. Each amount may be a unit larger on the chain: two for each segment
    # of a seat, two for each look, and four more.
    owed += 2 * verifiers * each + 2 * looked + 4
    least = max(-(-4 * owed // 3), 8 * max(reward, retrain), 4 * bond) + 2
    stake = luck.choice([least, 1000 * TOKEN + 2 * least])
    return MarketParameters(
        budget=budget,
        stake=stake,
        restitution=restitution,
        audit_fee=fee,
        delay_penalty=luck.choice([0, 1, stake]),
        draw_fee=draw_fee,
        # Every stake covers the least lock of a seat, which may be up to six units larger on the chain.
        stake_unit=max(each * fee + draw_fee, 2 * draw_fee, 4 * cost if looks else 0) + 6 + some(),
        look_chance=1.0 if looks else 0.0,
        bond=bond,
        reward=reward,
        game_cost=cost,
        retrain_reward=retrain,
        segments=segments,
        verifiers=verifiers,
        segments_per_verifier=each,
        # Asks of a few units would lie within one undercut, whose rounding decides who bids last.
        training_cost=luck.choice([TOKEN, 60 * TOKEN]),
        markup=1.0,
        silence_rate=luck.choice([0.0, 0.3]),
        crash_rate=luck.choice([0.0, 0.2]),
        downtime=luck.choice([0.0, 0.3]),
        beacon_stops=luck.choice([0.0, 0.0, 0.5]),
        redraws=luck.randint(0, 3),
        solver_count=everybody.solver_count,
        verifier_count=everybody.verifier_count,
    )


def anything(seed: int, tasks: int = 4) -> Scenario:
    """The random market of a seed."""
    luck = random.Random(seed)
    everybody = people(luck)
    given = parameters(luck, everybody, looks=random.Random(f"looks {seed}").random() < 0.5)
    return Scenario(
        f"anything {seed}",
        "a market by a seed",
        everybody,
        given,
        None,
        tasks=tasks,
        seed=seed,
    )


def check(replayed: Replayed, market: Scenario) -> None:
    """Check that engine and chain agree until the last withdrawal."""
    ended = replayed(market, lambda _event: None)
    assert len(ended.outcomes) == market.tasks
    assert not ended.differing


@pytest.mark.parametrize("seed", range(3))
def test_any_market(replayed: Replayed, seed: int) -> None:
    check(replayed, anything(seed, tasks=2))


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("start", range(100, 160, 10))
def test_many_markets(replayed: Replayed, start: int) -> None:
    for seed in range(start, start + 10):
        check(replayed, anything(seed))
