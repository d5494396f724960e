"""Splits and bookings: arrays against protocol.tasks.economics and its vectors, in both kinds of integers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.tasks.economics import slash_split
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


@pytest.mark.parametrize(("dtype", "amounts"), [(np.int64, ENGINE), (object, CHAIN)])
@given(data=st.data())
def test_splits_are_those_of_the_protocol(
    dtype: type[Any], amounts: st.SearchStrategy[int], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=8))
    one, two, three = (np.array(part, dtype=dtype) for part in zip(*rows))
    slash = shares.slash(one, two, three)
    assert slash.burned.dtype == dtype
    for row, (a, b, c) in enumerate(rows):
        expected = slash_split(a, b, c)
        assert slash.rewarded[row] == expected.rewarded
        assert slash.restored[row] == expected.restored
        assert slash.burned[row] == expected.burned + expected.rest


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


@given(amounts=st.tuples(CHAIN, CHAIN, CHAIN, CHAIN, CHAIN, CHAIN), silent=st.integers(0, 2))
def test_ends_in_the_chains_amounts(amounts: tuple[int, ...], silent: int) -> None:
    """Amounts of 18 decimals go through every booking without a rounding, and what nobody holds is burned."""
    stake, reward, restitution, price, fee, draw_fee = amounts
    ledger = Ledger(np.full((5, 1), 2 * (sum(amounts) + draw_fee), dtype=object))
    solver, seats = np.array([SOLVER]), np.array([[VERIFIER], [VERIFIER + 1]])
    dumb = np.array([[silent > 0], [silent > 1]])
    booking.pay_draws(ledger, ROW, draw_fee, np.array([2]))
    booking.silence(ledger, ROW, seats, dumb, fee=fee, draw_fee=draw_fee)
    booking.dismiss(ledger, ROW, solver, seats[0], stake)
    booking.pay_seats(ledger, ROW, seats, np.array([[True], [False]]), fee)
    booking.pay_solver(ledger, ROW, solver, np.array([price], dtype=object))
    booking.close_undrawn(ledger, ROW, solver, np.array([price], dtype=object))
    booking.convict(ledger, ROW, solver, seats[1], stake=stake, reward=reward, restitution=restitution)
    slash = slash_split(stake, reward, restitution)
    gains = [int(gain) for gain in ledger.gains()[:, 0]]
    lost = silent * (fee + draw_fee)
    assert gains[SUBMITTER] == -2 * draw_fee - fee - price - price // 2 + slash.restored
    assert gains[DRAWER] == 2 * draw_fee + min(silent, 1) * draw_fee
    assert gains[SOLVER] == stake // 2 + price + price // 2 - stake
    assert gains[VERIFIER] + gains[VERIFIER + 1] == fee - lost - stake + slash.rewarded
    burned = stake - stake // 2 + slash.burned + slash.rest + lost - min(silent, 1) * draw_fee
    assert int(ledger.burned[0]) == burned == -sum(gains)


def test_a_missed_deadline_pays_the_submitter_half_rounded_down() -> None:
    ledger = Ledger(np.full((3, 2), 100))
    booking.expire(ledger, np.array([1]), np.array([SOLVER]), 31)
    assert ledger.gains().tolist() == [[0, 15], [0, 0], [0, -31]]
    assert ledger.burned.tolist() == [0, 16]
    assert ledger.balanced()


def test_the_first_silent_account_of_each_row_pays_the_draw() -> None:
    ledger = Ledger(np.full((5, 3), 100))
    silent = np.array([[True, False, False], [True, True, False]])
    seats = np.array([[3, 3, 3], [4, 4, 4]])
    booking.silence(ledger, np.arange(3), seats, silent, fee=10, draw_fee=3)
    assert ledger.gains()[3:].tolist() == [[-13, 0, 0], [-13, -13, 0]]
    assert ledger.gains()[DRAWER].tolist() == [3, 3, 0]
    assert ledger.burned.tolist() == [23, 10, 0]


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
