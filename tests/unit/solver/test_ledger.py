"""Sums of a ledger, by month and task, equal the vault's to the last unit."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.node.home import Home
from protocol.node.settings import SettingsError
from solver.database import Booked, Database
from solver.earnings import Ledger, earnings, read, write_csv
from solver.ledger import Flow, Kind, Spent, Sums, by_month_and_task, month_of, open_locks, total, written
from tests.unit.solver import tiny

NOVEMBER = int(datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC).timestamp())
TOKEN = 10**18


def flow(
    kind: Kind, units: int, *, task: int = 7, lock: int = 1, time: int = NOVEMBER, place: int = 0
) -> Flow:
    return Flow(5, place, time, task, kind, units, lock, "0xab")


def spent(fee: int, *, task: int = 7, time: int = NOVEMBER, credit: int = 0) -> Spent:
    return Spent("0xcd", 0, 5, time, task, "TaskMarket.bid", True, 100_000, fee // 100_000, fee, 0, credit)


def test_a_month_ends_where_utc_ends_it() -> None:
    assert (month_of(NOVEMBER), month_of(NOVEMBER + 1)) == ("2026-11", "2026-12")
    assert written(NOVEMBER) == "2026-11-30T23:59:59Z"


def test_what_was_locked_and_lost_is_neither_free_nor_locked() -> None:
    entries = [
        flow(Kind.DEPOSITED, 1_000, lock=0),
        flow(Kind.LOCKED, 600),
        flow(Kind.RELEASED, 100),
        flow(Kind.LOST, 200),
        flow(Kind.BURNED, 250),
        flow(Kind.EARNED, 30, lock=0),
        flow(Kind.WITHDRAWN, 10, lock=0),
    ]
    sums = total(entries)
    assert (sums.locked, sums.free, sums.income) == (50, 520, -420)
    assert open_locks(entries) == {1: 7}
    assert open_locks([*entries, flow(Kind.RELEASED, 50)]) == {}


def test_rows_are_by_month_and_task_and_add_up_to_all() -> None:
    entries: list[Flow | Spent] = [
        flow(Kind.EARNED, 5, lock=0),
        flow(Kind.EARNED, 7, lock=0, time=NOVEMBER + 1),
        spent(10**6, task=0),
        spent(10**7, credit=3),
    ]
    groups = by_month_and_task(entries)
    assert list(groups) == [("2026-11", 0), ("2026-11", 7), ("2026-12", 7)]
    assert groups["2026-11", 7] == Sums(earned=5, gas=100_000, fee=10**7, credit=3)
    assert groups["2026-11", 7].coin == 10**7 - 3


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Flow], int, dict[int, int]]:
    """Flows of a vault, and the free balance and locks that the contract would have after them."""
    free = 0
    locks: dict[int, int] = {}
    flows: list[Flow] = []
    for place in range(draw(st.integers(0, 40))):
        held = [lock for lock, left in locks.items() if left]
        kind = draw(st.sampled_from(Kind))
        lock, most = 0, 10**24
        if kind in (Kind.WITHDRAWN, Kind.LOCKED):
            most = free
        elif kind in (Kind.RELEASED, Kind.LOST, Kind.BURNED):
            if not held:
                continue
            lock = draw(st.sampled_from(held))
            most = locks[lock]
        units = draw(st.integers(0, most))
        if kind is Kind.LOCKED:
            lock = len(locks) + 1
            locks[lock] = units
        elif lock:
            locks[lock] -= units
        free += {
            Kind.DEPOSITED: 1,
            Kind.EARNED: 1,
            Kind.RELEASED: 1,
            Kind.WITHDRAWN: -1,
            Kind.LOCKED: -1,
        }.get(kind, 0) * units
        time = draw(st.integers(0, 2 * 10**9))
        flows.append(Flow(place, 0, time, draw(st.integers(0, 3)), kind, units, lock, "0x"))
    return flows, free, locks


@given(histories())
def test_sums_are_the_vaults_whatever_happened(history: tuple[list[Flow], int, dict[int, int]]) -> None:
    flows, free, locks = history
    sums = total(flows)
    assert (sums.free, sums.locked) == (free, sum(locks.values()))
    assert set(open_locks(flows)) == {lock for lock, left in locks.items() if left}
    groups = by_month_and_task(flows).values()
    assert sum(one.income for one in groups) == sums.income
    assert sum(one.locked for one in groups) == sums.locked


def test_csv_has_every_digit_and_signs_of_what_came_and_went() -> None:
    entries: Sequence[Flow | Spent] = [
        flow(Kind.EARNED, 90 * TOKEN + 1, lock=0),
        flow(Kind.LOCKED, 5 * TOKEN),
        spent(123_456_789_000_000),
        Spent("0xef", 1, 6, NOVEMBER, 0, "StakeVault.deposit", False, 21_000, 1, 21_000, 0, 0),
    ]
    file = io.StringIO()
    write_csv([Ledger("0xmarket", "0xme", entries, None)], file)
    head, *lines = file.getvalue().splitlines()
    assert head == ("time,month,market,account,task,what,tokens,coin,gas,gas_price_wei,block,transaction")
    place = "2026-11-30T23:59:59Z,2026-11,0xmarket,0xme"
    assert lines == [
        f"{place},7,earned,90.000000000000000001,,,,5,0xab",
        f"{place},7,locked,-5,,,,5,0xab",
        f"{place},7,TaskMarket.bid,,-0.000123456789,100000,1234567890,5,0xcd",
        f"{place},0,StakeVault.deposit (reverted),,-0.000000000000021,21000,1,6,0xef",
    ]


def test_a_ledger_is_booked_whole_and_once(tmp_path: Path) -> None:
    database = Database(tmp_path / "solver.sqlite", tiny.IDENTITY)
    assert database.booked() is None
    huge = 2**94
    for _ in range(2):
        database.book([flow(Kind.EARNED, huge, lock=0)], [spent(huge)], Booked(9, NOVEMBER, 1))
    assert database.flows() == [flow(Kind.EARNED, huge, lock=0)]
    assert database.spent() == [spent(huge)]
    assert database.booked() == Booked(9, NOVEMBER, 1)
    database.close()


@pytest.mark.parametrize("month", ["2026", "2026-13", "26-11", "2026-11; drop", "٢٠٢٦-١١"])
def test_a_month_is_a_year_and_a_month(month: str) -> None:
    with pytest.raises(SettingsError, match="such as 2026-11"):
        earnings(Home(Path("/nowhere")), month, False, False)


def test_a_home_folder_without_a_node_has_no_ledgers(tmp_path: Path) -> None:
    (tmp_path / "solver" / "x").mkdir(parents=True)
    assert list(read(Home(tmp_path))) == []
