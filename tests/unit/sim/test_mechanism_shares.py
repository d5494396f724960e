"""Splits and bookings: arrays against protocol.tasks.economics and its vectors, in both kinds of integers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.economics import settle_split, slash_split
from sim.errors import ParameterError
from sim.mechanism import booking, shares
from sim.mechanism.booking import DRAWER, FIRST_SOLVER, SUBMITTER
from sim.mechanism.ledger import Ledger, book

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "economics.json").read_text())
ENGINE = st.integers(0, 10**15)
CHAIN = st.integers(0, 2**94)
SOLVER, VERIFIER = FIRST_SOLVER, FIRST_SOLVER + 1
ROW = np.zeros(1, dtype=np.int64)


def column(case: str, name: str) -> np.ndarray:
    return np.array([int(text) for text in VECTORS[case][name]], dtype=object)


def test_slashes_meet_the_vectors_that_the_contracts_replay() -> None:
    split = shares.slash(*(column("slash", name) for name in ("stake", "reward", "restitution")))
    assert (split.rewarded == column("slash", "rewarded")).all()
    assert (split.restored == column("slash", "restored")).all()
    assert (split.burned == column("slash", "burned") + column("slash", "rest")).all()


def test_settlements_meet_the_vectors_that_the_contracts_replay() -> None:
    split = shares.settle(*(column("settle", name) for name in ("price", "reserve", "fee", "attestations")))
    assert (split.each == column("settle", "each")).all()
    assert (split.to_solver == column("settle", "to_solver")).all()


@pytest.mark.parametrize(("dtype", "amounts"), [(np.int64, ENGINE), (object, CHAIN)])
@given(data=st.data())
def test_splits_are_those_of_the_protocol(
    dtype: type[Any], amounts: st.SearchStrategy[int], data: st.DataObject
) -> None:
    rows = data.draw(
        st.lists(st.tuples(amounts, amounts, amounts, st.integers(0, 128)), min_size=1, max_size=8)
    )
    one, two, three, counts = (np.array(part, dtype=dtype) for part in zip(*rows))
    slash = shares.slash(one, two, three)
    settle = shares.settle(one, two, three, counts.astype(np.int64))
    assert slash.burned.dtype == settle.to_solver.dtype == dtype
    for row, (a, b, c, count) in enumerate(rows):
        expected = slash_split(a, b, c)
        assert slash.rewarded[row] == expected.rewarded
        assert slash.restored[row] == expected.restored
        assert slash.burned[row] == expected.burned + expected.rest
        assert (settle.each[row], settle.to_solver[row]) == settle_split(a, b, c, count)


@pytest.mark.parametrize("dtype", [np.int64, object])
@given(
    table=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=5
    )
)
def test_a_booking_counts_every_amount_also_on_one_account(
    dtype: type[Any], table: list[tuple[int, int, int]]
) -> None:
    """Two seats in each row, which one verifier may hold."""
    accounts = np.array([entry[:2] for entry in table]).T
    amounts = np.array([entry[2] for entry in table], dtype=dtype)
    places, expected = np.zeros((4, len(table)), dtype=dtype), [[0] * len(table) for _ in range(4)]
    book(places, np.arange(len(table)), accounts, np.stack([amounts, 2 * amounts]))
    for row, (one, other, amount) in enumerate(table):
        expected[one][row] += amount
        expected[other][row] += 2 * amount
    assert places.tolist() == expected


def test_one_booking_serves_one_account_or_one_amount_for_all_rows() -> None:
    places = np.zeros((2, 4), dtype=np.int64)
    book(places, np.array([1, 3]), 1, np.array([5, 6]))
    book(places, np.array([0, 1]), np.array([0, 1]), np.asarray(7))
    assert places.tolist() == [[7, 0, 0, 0], [0, 12, 0, 6]]


@given(
    amounts=st.tuples(CHAIN, CHAIN, CHAIN, CHAIN, CHAIN),
    counts=st.tuples(st.integers(0, 64), st.integers(0, 64)),
    same=st.booleans(),
)
def test_ends_in_the_chains_amounts(amounts: tuple[int, ...], counts: tuple[int, int], same: bool) -> None:
    """Amounts of 18 decimals go through every booking without a rounding, and what nobody holds is burned."""
    stake, reward, restitution, price, fee = amounts
    reserve = fee * 100
    ledger = Ledger(np.full((5, 1), stake + reserve + price + fee + restitution, dtype=object))
    solver, seats = np.array([SOLVER]), np.array([[VERIFIER], [VERIFIER if same else VERIFIER + 1]])
    booking.pay_drawer(ledger, ROW, fee)
    booking.dismiss(ledger, ROW, solver, seats[0], stake)
    split = booking.settle(
        ledger,
        ROW,
        solver,
        seats,
        np.array(counts)[:, None],
        price=np.array([price], dtype=object),
        reserve=reserve,
        fee=fee,
    )
    booking.convict(ledger, ROW, solver, seats[1], stake=stake, reward=reward, restitution=restitution)
    each, to_solver = settle_split(price, reserve, fee, sum(counts))
    slash = slash_split(stake, reward, restitution)
    gains = [int(gain) for gain in ledger.gains()[:, 0]]
    assert (int(split.each[0]), int(split.to_solver[0])) == (each, to_solver)
    assert gains[SUBMITTER] == -fee - each * sum(counts) - to_solver + slash.restored
    assert gains[DRAWER] == fee
    assert gains[SOLVER] == stake // 2 + to_solver - stake
    assert gains[VERIFIER] + gains[VERIFIER + 1] == each * sum(counts) - stake + slash.rewarded
    assert int(ledger.burned[0]) == stake - stake // 2 + slash.burned + slash.rest == -sum(gains)


def test_a_missed_deadline_burns_the_penalty() -> None:
    ledger = Ledger(np.full((3, 2), 100))
    booking.expire(ledger, np.array([1]), np.array([SOLVER]), 30)
    assert ledger.gains().tolist() == [[0, 0], [0, 0], [0, -30]]
    assert ledger.burned.tolist() == [0, 30]
    assert ledger.balanced()


def test_a_lost_draw_burns_the_stake() -> None:
    ledger = Ledger(np.full((3, 2), 100))
    booking.lose_draw(ledger, np.array([0]), np.array([SOLVER]), 70)
    assert ledger.gains().tolist() == [[0, 0], [0, 0], [-70, 0]]
    assert ledger.burned.tolist() == [70, 0]
    assert ledger.balanced()


def test_a_ledger_that_lost_a_unit_is_not_balanced() -> None:
    ledger = Ledger(np.full((3, 2), 100))
    ledger.lock(slice(1, 2), 40)
    assert ledger.balanced()
    ledger.free[2, 1] -= 1
    assert not ledger.balanced()


def test_a_ledger_in_which_somebody_owes_is_not_balanced() -> None:
    ledger = Ledger(np.full((3, 1), 100))
    ledger.take(ROW, 2, np.asarray(101))
    ledger.give(ROW, 1, np.asarray(101))
    assert not ledger.balanced()


def test_deposits_beyond_62_bits_are_refused() -> None:
    with pytest.raises(ParameterError, match="lower amounts, agents or rounds"):
        Ledger(np.full((2, 1), 1 << 61))
    assert Ledger(np.full((2, 1), 1 << 90, dtype=object)).balanced()
