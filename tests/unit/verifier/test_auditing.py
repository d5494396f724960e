"""Who accuses what was found different: every own seat that has the segment, or the main account without a seat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.dispute.keys import NO_SEAT
from protocol.node.database import Identity
from tests.unit.verifier.test_seats import ME, MINE_TOO, OTHER, seat
from verifier.auditing import _accuse
from verifier.context import Context
from verifier.database import Database
from verifier.replaying import Different

SEGMENTS = {0: [1, 2], 1: [2, 3], 2: [2], 3: [4]}
SEATS = [seat(0, MINE_TOO), seat(1, OTHER), seat(2, ME), seat(3, OTHER)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield made
    made.close()


def accused(
    database: Database, replayed: int, segment: int | None, drawn: bool = True
) -> list[tuple[int, str]]:
    """Seats and accounts that accuse when the replay of a segment finds this one false."""
    client = SimpleNamespace(address=ME, audit=SimpleNamespace(seats=lambda _task: SEATS if drawn else []))
    context = SimpleNamespace(
        client=client,
        clients={ME: client, MINE_TOO: client},
        database=database,
        segments=lambda _task, number: SEGMENTS[number],
    )
    _accuse(cast(Context, context), 1, replayed, Different(segment, ()))
    return [(row.seat, row.account) for row in database.accusations(1)]


@pytest.mark.parametrize(
    ("replayed", "segment", "expected"),
    [
        (1, 1, [(0, MINE_TOO)]),
        (2, 2, [(0, MINE_TOO), (2, ME)]),
        (3, 3, [(NO_SEAT, ME)]),
        (1, 4, [(NO_SEAT, ME)]),
        (2, None, [(0, MINE_TOO)]),
        (4, None, [(NO_SEAT, ME)]),
    ],
)
def test_a_false_segment_is_accused_by_each_own_seat_that_has_it(
    database: Database, replayed: int, segment: int | None, expected: list[tuple[int, str]]
) -> None:
    assert accused(database, replayed, segment) == expected


def test_before_the_draw_the_main_account_accuses_and_its_seat_does_not_do_so_again(
    database: Database,
) -> None:
    assert accused(database, 2, 2, drawn=False) == [(NO_SEAT, ME)]
    assert accused(database, 2, 2) == [(0, MINE_TOO), (NO_SEAT, ME)], "but the other account's does"
    salts = {row.salt for row in database.accusations(1)}
    assert len(salts) == 2
