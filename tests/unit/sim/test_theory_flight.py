"""The theory of tasks in flight. Its draws are compared with sums over all ways to fill seats, and its sales
with a simulated market of stakes.
"""

from itertools import product
from math import prod

import pytest

from sim.theory import (
    TheoryError,
    draws_in_flight,
    filled_law,
    least_accounts,
    sold_in_flight,
)


@pytest.mark.parametrize(
    ("verifiers", "accounts", "bound", "draws"), [(1, 3, 2, 2), (2, 40, 38, 2), (3, 60, 57, 2), (2, 9, 9, 3)]
)
def test_seats_are_filled_one_after_the_other(verifiers: int, accounts: int, bound: int, draws: int) -> None:
    """The expected values are sums over all the ways in which the requested seats are filled or stay empty at
    each draw.
    """
    law, again, unfilled = [0.0] * (verifiers + 1), 0.0, 0.0
    for ways in product(product((False, True), repeat=verifiers), repeat=draws):
        filled, chance, redraws = 0, 1.0, -1
        for way in ways:
            asked = verifiers - filled
            # Draws after the task is full, and seats that are not requested, count in only one way.
            chance *= all(way[asked:])
            redraws += asked > 0
            for fills in way[:asked]:
                empty = ((bound + filled) / accounts) ** 32
                chance *= (1 - empty) if fills else empty
                filled += fills
        law[filled] += chance
        again += chance * redraws
        unfilled += chance * (filled < verifiers)
    assert sum(law) == pytest.approx(1)
    found, drawn = filled_law(verifiers=verifiers, accounts=accounts, bound=bound, draws=draws)
    assert found == pytest.approx(law, rel=1e-9, abs=1e-15)
    assert drawn == pytest.approx((again, unfilled), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("overlap", "accounts", "tasks"), [(1, 3, 4), (2, 3, 5), (3, 5, 5), (3, 6, 4), (4, 9, 5)]
)
def test_tasks_bind_those_after_them(overlap: int, accounts: int, tasks: int) -> None:
    """The expected values are sums over all possible sequences. A sequence holds the number of filled seats
    of each task.
    """
    v, redraws, unfilled = 2, 0.0, 0.0
    for filled in product(range(v + 1), repeat=tasks):
        chances, drawn = [], []
        for number, seats in enumerate(filled):
            bound = min(sum(filled[max(0, number - overlap + 1) : number]), accounts)
            law, draws = filled_law(verifiers=v, accounts=accounts, bound=bound)
            chances.append(law[seats])
            drawn.append(draws)
        # The mean number of a task's draws depends only on earlier tasks, so only these have weights.
        for number, draws in enumerate(drawn):
            if not any(filled[number:]):
                weight = prod(chances[:number])
                redraws += weight * draws.redraws / tasks
                unfilled += weight * draws.unfilled / tasks
    found = draws_in_flight(verifiers=v, accounts=accounts, overlap=overlap, tasks=tasks)
    assert found == pytest.approx((redraws, unfilled), rel=1e-9)


def test_limits_of_draws() -> None:
    alone = draws_in_flight(verifiers=3, accounts=1000, overlap=1, tasks=9)
    assert alone == pytest.approx((0, 0), abs=1e-80)
    # Two accounts, and two tasks in flight with two seats each: every second task finds nobody in 8 draws.
    assert draws_in_flight(verifiers=2, accounts=2, overlap=2, tasks=8).unfilled == pytest.approx(
        0.5, rel=1e-4
    )
    assert filled_law(verifiers=2, accounts=2, bound=2)[1] == (7, 1)


@pytest.mark.parametrize(("verifiers", "overlap", "redrawn"), [(3, 1, 0.01), (3, 8, 0.01), (5, 64, 0.001)])
def test_one_account_fewer_is_redrawn_too_often(verifiers: int, overlap: int, redrawn: float) -> None:
    least = least_accounts(verifiers=verifiers, overlap=overlap, redrawn=redrawn)
    bound = verifiers * (overlap - 1)

    def chance(accounts: int) -> float:
        return 1 - prod(1 - ((bound + seat) / accounts) ** 32 for seat in range(verifiers))

    assert chance(least) <= redrawn
    assert least == bound + verifiers or chance(least - 1) > redrawn


@pytest.mark.parametrize("stakes", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("overlap", [1, 2, 3, 4])
def test_sales_of_a_market_of_stakes(stakes: int, overlap: int) -> None:
    for tasks in range(1, 12):
        sold: list[bool] = []
        for _ in range(tasks):
            in_flight = sold[-(overlap - 1) :] if overlap > 1 else []
            sold.append(sum(in_flight) < stakes)
        assert sold_in_flight(stakes=stakes, overlap=overlap, tasks=tasks) == sum(sold) / tasks


def test_impossible_markets_are_refused() -> None:
    with pytest.raises(TheoryError, match="bound must be from 0 to 5, got 6"):
        filled_law(verifiers=2, accounts=5, bound=6)
    with pytest.raises(TheoryError, match=r"overlap must leave at most 2\^20 states"):
        draws_in_flight(verifiers=3, accounts=99, overlap=12, tasks=2)
    with pytest.raises(TheoryError, match="overlap must be at least 1"):
        sold_in_flight(stakes=1, overlap=0, tasks=2)
