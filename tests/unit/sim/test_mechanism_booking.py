"""Bookings, bonds and claims by hand, in int64 and in Python's integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ParameterError
from sim.mechanism import booking
from sim.mechanism.bonds import bond_of, bonds_of, most_locked
from sim.mechanism.booking import DRAWER, FIRST_SOLVER, SUBMITTER
from sim.mechanism.claims import NO_SEGMENT, fees_owed
from sim.mechanism.ledger import Ledger, book

CHAIN = st.integers(0, 2**94)
SOLVER, VERIFIER = FIRST_SOLVER, FIRST_SOLVER + 1
ROW = np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("dtype", [np.int64, object])
@given(
    table=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=5
    )
)
def test_a_booking_counts_every_amount_also_on_one_account(
    dtype: type[Any], table: list[tuple[int, int, int]]
) -> None:
    """Each row has two seats, and one verifier may hold both."""
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


@given(amounts=st.tuples(*(CHAIN,) * 9), silent=st.integers(0, 2))
def test_ends_in_the_chains_amounts(amounts: tuple[int, ...], silent: int) -> None:
    """Bookings of amounts with 18 decimals are exact, even where halves are rounded down."""
    bond, reward, restitution, price, fee, draw_fee, cost, rest, lock = amounts
    ledger = Ledger(np.full((5, 1), 4 * sum(amounts), dtype=object))
    solver, seats = np.array([SOLVER]), np.array([[VERIFIER], [VERIFIER + 1]])
    dumb, one = np.array([[silent > 0], [silent > 1]]), np.array([[True], [False]])

    def exact(amount: int) -> np.ndarray:
        return np.array([amount], dtype=object)

    booking.pay_draws(ledger, ROW, draw_fee, np.array([2]))
    booking.silence(ledger, ROW, seats, dumb, fee=fee, draw_fee=draw_fee)
    booking.dismiss(ledger, ROW, solver, seats[0], exact(bond))
    booking.forfeit(ledger, ROW, seats[1], exact(bond))
    booking.pay_seats(ledger, ROW, seats, one, fee)
    booking.pay_solver(ledger, ROW, solver, exact(price))
    booking.close_undrawn(ledger, ROW, solver, exact(price))
    booking.convict(ledger, ROW, solver, seats[1], reward=exact(reward), restitution=restitution)
    booking.compensate(ledger, ROW, solver, seats, one, cost=cost, fee=fee)
    booking.pay_fees(ledger, ROW, solver, seats, ~one, fee=fee)
    booking.burn_rest(ledger, ROW, solver, exact(rest))
    # The second of two looks catches the first account. Both looks dropped a game, and one game is answered.
    targets, lookers = np.full((2, 1), VERIFIER), np.full((2, 1), VERIFIER + 1)
    booking.take_locks(ledger, ROW, targets, lookers, ~one, lock)
    booking.pay_dropped(ledger, ROW, lookers, np.full((2, 1), SOLVER), one | ~one, cost)
    booking.pay_answered(ledger, ROW, lookers, targets, one, cost)
    gains = [int(gain) for gain in ledger.gains()[:, 0]]
    lost = draw_fee + fee
    assert gains[SUBMITTER] == -2 * draw_fee - fee - price - price // 2 + restitution
    assert gains[DRAWER] == 2 * draw_fee + min(silent, 1) * draw_fee
    paid = reward + restitution + cost + 2 * fee + rest
    assert gains[SOLVER] == bond // 2 + price + price // 2 - paid + 2 * cost
    assert gains[VERIFIER] == 2 * fee + 2 * cost - bond - (silent > 0) * lost - lock
    assert gains[VERIFIER + 1] == reward + fee - bond - (silent > 1) * lost + lock // 2 - 3 * cost
    burned = 2 * bond - bond // 2 + rest + silent * lost - min(silent, 1) * draw_fee + lock - lock // 2
    assert int(ledger.burned[0]) == burned == -sum(gains)


def test_fees_are_owed_to_attested_seats_elsewhere() -> None:
    """Each of the four seats has two segments. There are three rows: the first convicts segment 3, the second
    convicts segment 1, and the third names no segment.
    """
    attested = np.array([[True], [True], [False], [True]]) & np.ones(3, dtype=bool)
    spoke = np.array([[False], [False], [False], [True]]) & np.ones(3, dtype=bool)
    segments = np.array([[1, 2, 2, 2], [3, 4, 4, 4]])[:, :, None] + np.zeros(3, dtype=int)
    owed = fees_owed(attested, spoke, segments, np.array([3, 1, NO_SEGMENT]))
    assert owed.T.tolist() == [
        [False, True, False, False],
        [False, True, False, False],
        [True, True, False, False],
    ]


def test_the_seventeenth_bond_is_the_first_that_doubles() -> None:
    bonds = [bond_of(5, held) for held in range(19)]
    assert bonds == [5] * 16 + [10, 20, 40]
    assert bonds_of(5, np.arange(19)).tolist() == bonds
    assert bond_of(1, 10**6) == 1 << 96


@given(held=st.integers(0, 150), commitments=st.integers(0, 150))
def test_what_is_locked_by_many_is_their_sum(held: int, commitments: int) -> None:
    assert most_locked(3, held, commitments) == sum(bond_of(3, held + n) for n in range(commitments))


def test_a_missed_deadline_pays_the_submitter_half_rounded_down() -> None:
    ledger = Ledger(np.full((3, 2), 100))
    booking.expire(ledger, np.array([1]), np.array([SOLVER]), 31)
    assert ledger.gains().tolist() == [[0, 15], [0, 0], [0, -31]]
    assert ledger.burned.tolist() == [0, 16]
    assert ledger.balanced()


def test_silent_accounts_pay_no_draw_where_there_is_none_again() -> None:
    ledger = Ledger(np.full((5, 1), 100))
    booking.silence(
        ledger, ROW, np.array([[3], [4]]), np.ones((2, 1), dtype=bool), fee=10, draw_fee=3, again=False
    )
    assert ledger.gains()[:, 0].tolist() == [0, 0, 0, -13, -13]
    assert ledger.burned.tolist() == [26]


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
