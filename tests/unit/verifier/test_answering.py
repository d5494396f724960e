"""When a seat is accused: which open game it names in place of an answer, and when it answers although it has
an open game.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.views import Seat, TaskStatus
from protocol.dispute.keys import NO_SEAT
from protocol.node.database import Identity
from protocol.node.party.exits import Observation
from verifier.answering import answers, contests
from verifier.context import Context
from verifier.database import Challenge, Database

ME, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
TASK, SEAT, LOOK, SEGMENT, GAME = 1, 0, 32, 5, 7
ANSWER, CONTEST = f"answer {LOOK}", f"contest {LOOK}"


def place(number: int, account: str) -> Seat:
    return Seat(number, account, 1, 100, True, False, False)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """The context of a seat that a look at segment 5 accuses; it has until second 50 to answer."""
    stands, told = SimpleNamespace(game=0, until=50), SimpleNamespace()
    return cast(
        Context,
        SimpleNamespace(
            clients={ME: None},
            database=Database(tmp_path / "verifier.sqlite", Identity("0xgenesis", "0xmarket", ME)),
            looks=SimpleNamespace(of=lambda *_: stands, accused=lambda *_: told),
            segments=lambda *_: [SEGMENT],
            terms=lambda _: SimpleNamespace(segments_per_verifier=1),
            work_by=lambda until: until - 2.5,
        ),
    )


def seen(now: int = 50) -> Observation:
    view: Any = SimpleNamespace(task=TASK, status=TaskStatus.SUBMITTED)
    return Observation(view, now, seats=[place(SEAT, ME)], looks=[place(LOOK, OTHER)], accusations=1)


def play(
    context: Context, segment: int | None, seat: int = SEAT, account: str = ME, asks: bool = False
) -> None:
    """Give the node an open game."""
    context.database.put_challenge(Challenge(TASK, seat, account, segment, bytes(32), b"", asks=asks))
    context.database.update_challenge((TASK, seat), game=GAME)


def due(context: Context, now: int = 50) -> list[str]:
    return [job.what for found in (answers, contests) for job in found(context, seen(now))]


def test_without_a_game_it_answers_in_time(context: Context) -> None:
    assert due(context) == [ANSWER]
    assert [job.until for job in answers(context, seen())] == [47.5], (
        "two blocks and a look before its time is over"
    )
    assert due(context, now=51) == []


@pytest.mark.parametrize("segment", [SEGMENT, None])
def test_a_game_on_the_segment_or_a_blind_one_is_named(context: Context, segment: int | None) -> None:
    play(context, segment)
    assert due(context) == [CONTEST]
    assert due(context, now=51) == []


def test_with_a_game_on_an_earlier_segment_it_does_both(context: Context) -> None:
    """If the open game is on an earlier segment, the seat names the game and also answers. It can answer
    because it replays from the solver's checkpoint, so its states may still equal the solver's.
    """
    play(context, SEGMENT - 1, seat=NO_SEAT)
    assert due(context) == [ANSWER, CONTEST]


@pytest.mark.parametrize(
    "game",
    [{"segment": SEGMENT + 1}, {"segment": SEGMENT, "account": OTHER}, {"segment": SEGMENT, "asks": True}],
)
def test_other_games_are_not(context: Context, game: dict[str, Any]) -> None:
    play(context, **game)
    assert due(context) == [ANSWER]


def test_a_game_that_is_over_is_not(context: Context) -> None:
    play(context, SEGMENT)
    context.database.update_challenge((TASK, SEAT), outcome="challenger_silent")
    assert due(context) == [ANSWER]
