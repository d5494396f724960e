"""The invariants of dispute.md section 8, over parameters and populations of all strategies."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.agents.population import BYSTANDERS, SOLVERS, SUBMITTERS, VERIFIERS, Population, population
from sim.agents.solvers import Lazy, Solver, Withholder
from sim.agents.verifiers import Verifier
from sim.engine.market import Market
from sim.engine.streams import streams
from sim.mechanism.auctions import AUCTIONS
from sim.mechanism.booking import DRAWER, SUBMITTER
from sim.parameters import MarketParameters
from sim.units import TOKEN

ROUNDS, ROWS = 4, 16
SHARES = st.sampled_from([0.0, 0.3, 1.0])


@st.composite
def games(draw: st.DrawFn, fixed: Mapping[str, float] | None = None) -> MarketParameters:
    """Parameters of small tasks, with small and large amounts and up to nine redraws."""
    budget = draw(st.sampled_from([1, 60 * TOKEN, 100 * TOKEN]))
    segments, verifiers = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    restitution, fee = draw(st.sampled_from([0, budget])), draw(st.sampled_from([0, 3, 50 * TOKEN]))
    reward, cost = draw(st.sampled_from([0, 50 * TOKEN])), draw(st.sampled_from([0, 1, 20 * TOKEN]))
    retrain, each = draw(st.sampled_from([0, 7, 90 * TOKEN])), draw(st.integers(1, segments))
    # The least stake is what a conviction owes, and then nothing is left to burn.
    looks = draw(st.sampled_from([0.0, 0.3, 1.0]))
    owed = max(reward, retrain) + verifiers * (cost + each * fee) + restitution
    owed += verifiers * each * (cost + fee) if looks else 0
    stake = owed + draw(st.sampled_from([0, 1, 7, 1000 * TOKEN]))
    values = {
        "budget": budget,
        "stake": stake,
        "restitution": restitution,
        "audit_fee": fee,
        "delay_penalty": draw(st.sampled_from([0, stake])),
        "segments": segments,
        "verifiers": verifiers,
        "segments_per_verifier": each,
        "bond": draw(st.sampled_from([0, 3, 20 * TOKEN])),
        "reward": reward,
        "game_cost": cost,
        "retrain_reward": retrain,
        "gas_volatility": draw(st.sampled_from([0.0, 0.5])),
        "token_volatility": draw(st.sampled_from([0.0, 0.5])),
        "downtime": draw(SHARES),
        "crash_rate": draw(SHARES),
        "silence_rate": draw(SHARES),
        "beacon_stops": draw(SHARES),
        "arrival_rate": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "solver_capital": draw(st.integers(0, 2)),
        "overlap": draw(st.integers(1, 4)),
        "capital_rate": draw(st.sampled_from([0.0, 0.1])),
        "draw_fee": draw(st.sampled_from([0, 1, TOKEN])),
        "look_chance": looks,
        "seat_lock": draw(st.sampled_from([0, 7, 90 * TOKEN])),
        "redraws": draw(st.integers(0, 9)),
        "markup": draw(st.sampled_from([0.0, 0.1, 1.0])),
    }
    return MarketParameters(**{**values, **(fixed or {})})  # type: ignore[arg-type]


@st.composite
def people(draw: st.DrawFn, *, honest_solvers: bool = False, some_honest: bool = False) -> Population:
    """A population with up to three agents of each kind, plus a few fixed agents. Verifiers may have several
    slots.
    """
    sizes = st.integers(0, 3)
    solvers = [(Solver(), 2)] if honest_solvers else [(kind(), draw(sizes)) for kind in SOLVERS.values()]
    verifiers = [(kind(), draw(sizes), draw(st.sampled_from([1, 2, 8]))) for kind in VERIFIERS.values()]
    return population(
        [*solvers, (Solver(), 1)],
        [*verifiers, (Verifier(), 1 if some_honest else 0), (VERIFIERS["lazy"](), 1)],
        [(kind(draw(SHARES)), draw(sizes)) for kind in BYSTANDERS.values()],
        SUBMITTERS[draw(st.sampled_from(sorted(SUBMITTERS)))](),
    )


def played(
    parameters: MarketParameters, everybody: Population, seed: int, auction: str = "descending"
) -> Market:
    luck = streams(np.random.SeedSequence(seed), ROWS)
    market = Market(parameters, everybody, ROWS, ROUNDS, luck, AUCTIONS[auction])
    for _ in range(ROUNDS):
        market.play()
    return market


@given(games(), people(), st.integers(0, 2**32), st.sampled_from(sorted(AUCTIONS)))
@settings(max_examples=150)
def test_inflow_is_payouts_refunds_and_burns(
    parameters: MarketParameters, everybody: Population, seed: int, auction: str
) -> None:
    """In every row and after every round, inflow equals payouts, refunds and burns, to the unit. Every task
    has exactly one end.
    """
    luck = streams(np.random.SeedSequence(seed), ROWS)
    market = Market(parameters, everybody, ROWS, ROUNDS, luck, AUCTIONS[auction])
    for _ in range(ROUNDS):
        market.play()
        assert market.books.ledger.balanced()
        # Free tokens cover the stakes in flight, so no token is in two tasks.
        books = market.books
        assert (books.stakes.locked <= books.ledger.free[books.solvers]).all()
    tally = market.books.tally
    ends = tally.unsold + tally.expired + tally.convicted + tally.void + tally.stalled + tally.settled
    assert (tally.posted == ends).all()
    assert (tally.escaped <= np.minimum(tally.false, tally.settled)).all()
    assert (tally.posted <= ROUNDS).all()
    assert (market.books.ledger.gains().sum(axis=0) == -market.books.ledger.burned).all()


@given(games({"silence_rate": 0.0}), people(honest_solvers=True), st.integers(0, 2**32))
def test_an_honest_solver_is_never_slashed(
    parameters: MarketParameters, everybody: Population, seed: int
) -> None:
    """An honest solver that answers every challenge loses at most delay penalties."""
    market = played(parameters, everybody, seed)
    books = market.books
    assert not books.tally.convicted.any()
    assert not books.tally.escaped.any()
    lost = np.minimum(books.ledger.gains()[books.solvers], 0).sum(axis=0)
    assert (-lost <= books.tally.expired * parameters.delay_penalty).all()


@given(games({"downtime": 0.0}), people(some_honest=True), st.integers(0, 2**32))
def test_an_honest_verifier_that_is_there_never_loses_stake(
    parameters: MarketParameters, everybody: Population, seed: int
) -> None:
    """An honest verifier that is never offline makes no loss, whatever the other agents do."""
    market = played(parameters, everybody, seed)
    gains = market.books.ledger.gains()[market.books.verifiers]
    for group in everybody.verifiers:
        if group.strategy.honest:
            assert (gains[group.members] >= 0).all()


@given(
    games({"downtime": 0.0, "crash_rate": 0.0, "arrival_rate": 1.0, "beacon_stops": 0.0, "overlap": 1}),
    st.integers(0, 2**32),
    st.data(),
)
def test_a_false_result_challenged_is_always_slashed(
    parameters: MarketParameters, seed: int, data: st.DataObject
) -> None:
    """A task that honest verifiers find false, or that is not served, is convicted and never settles."""
    cheat = data.draw(st.sampled_from([Withholder(), Lazy(1.0)]))
    market = played(parameters, population([(cheat, 3)], [(Verifier(), 4)]), seed)
    tally = market.books.tally
    assert (tally.convicted == tally.false).all()
    assert (tally.convicted == tally.posted - tally.unsold).all()
    assert not tally.settled.any()


@given(games(), people(), st.integers(0, 2**32))
def test_no_lock_pays_more_than_it_holds(
    parameters: MarketParameters, everybody: Population, seed: int
) -> None:
    """Each account loses at most its locks: stakes, escrows, bonds, and the lock of a seat or look."""
    market = played(parameters, everybody, seed)
    books, games = market.books, everybody.submitter.most_games
    gains = books.ledger.gains()
    a_task = parameters.escrow + parameters.delay_penalty + games * parameters.bond
    assert (gains[SUBMITTER] >= -ROUNDS * a_task).all()
    assert (gains[DRAWER] >= 0).all()
    assert (gains[books.solvers] >= -ROUNDS * parameters.stake).all()
    a_seat = max(parameters.bond, parameters.game_cost) + parameters.lock
    assert (gains[books.verifiers] >= -ROUNDS * a_seat).all()
    assert (gains[books.bystanders] >= -ROUNDS * parameters.bond).all()


@given(games({"arrival_rate": 0.0}), people(), st.integers(0, 2**32))
def test_nothing_moves_where_no_task_arrives(
    parameters: MarketParameters, everybody: Population, seed: int
) -> None:
    books = played(parameters, everybody, seed).books
    assert not books.profits().any()
    assert not books.tally.posted.any()


@pytest.mark.parametrize("kind", ["withholder", "lazy"])
def test_an_unbalanced_market_would_be_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The balance check fails if a slash loses tokens."""
    monkeypatch.setattr("sim.mechanism.ledger.Ledger.burn", lambda *_: None)
    market = played(MarketParameters(), population([(SOLVERS[kind](), 2)], [(Verifier(), 9)]), 1)
    assert not market.books.ledger.balanced()
