"""What a solver does about its submitted task, on a chain of a few numbers: it draws for itself, in time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.errors import HeaderError, RpcRefused
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from solver.context import Context
from solver.settlement import advance

BLOCK = 1_000
"""The draw's."""
WINDOW = 8_191
"""HISTORY_SERVE_WINDOW of EIP-2935: blocks whose hash a contract can learn."""
UNTIL = 500
"""End of the challenge window."""


class Chain:
    """A context on a chain where nobody else acts; `sent` is what the solver sent, `errors` its complaints."""

    def __init__(self, *, newest: int, now: int = 0, **facts: Any) -> None:
        known = {"drawn_at": 0, "draw_lost": False, "satisfied": False} | facts
        self.sent: list[str] = []
        self.errors: list[str] = []
        self.failure: Exception | None = None
        self.context = cast(
            "Context",
            SimpleNamespace(
                client=SimpleNamespace(
                    audit=SimpleNamespace(
                        **{name: lambda _task, value=value: value for name, value in known.items()},
                        draw=self._draw,
                        missed=lambda _task: "missed",
                    ),
                    market=SimpleNamespace(settle=lambda _task: "settled", void=lambda _task: "void"),
                    connection=SimpleNamespace(block=lambda: SimpleNamespace(number=newest)),
                    now=lambda: now,
                ),
                begin=self._begin,
                log=SimpleNamespace(error=lambda text, **_about: self.errors.append(text)),
            ),
        )

    def _draw(self, _task: int, block: int) -> str:
        if self.failure is not None:
            raise self.failure
        return f"drawn at {block}"

    def _begin(self, _task: int, _what: str, call: Callable[[], str]) -> None:
        self.sent.append(call())

    def advance(self, open_games: int = 0) -> list[str]:
        """What the solver sends now."""
        view = TaskView(
            *(
                7,
                NOBODY,
                1,
                2,
                NOBODY,
                TaskStatus.SUBMITTED,
                4,
                open_games,
                0,
                0,
                UNTIL,
                BLOCK,
                1,
                0,
                b"",
                b"",
            )
        )
        advance(self.context, view)
        return self.sent


@pytest.mark.parametrize(
    ("newest", "sent"),
    [
        (BLOCK, []),
        (BLOCK + 1, [f"drawn at {BLOCK}"]),
        (BLOCK + WINDOW, [f"drawn at {BLOCK}"]),
        (BLOCK + WINDOW + 1, ["missed"]),
    ],
)
def test_it_draws_as_soon_and_as_long_as_the_block_can_be_proved(newest: int, sent: list[str]) -> None:
    assert Chain(newest=newest).advance() == sent
    assert Chain(newest=newest, now=UNTIL + 1).advance(open_games=1) == sent


@pytest.mark.parametrize(
    "failure",
    [
        RpcRefused("block", "none"),
        HeaderError("header", expected="a hash", got="another", remedy="use another node"),
    ],
)
def test_a_node_that_serves_no_header_is_complained_about(failure: Exception) -> None:
    chain = Chain(newest=BLOCK + 1)
    chain.failure = failure
    with pytest.raises(type(failure)):  # beside the loop: it is a failure of this task
        chain.advance()
    assert (chain.sent, chain.errors) == ([], ["no header for the draw"])


def test_a_lost_draw_is_ended_once_no_game_is_open() -> None:
    lost: dict[str, Any] = {"newest": BLOCK + WINDOW + 1, "draw_lost": True}
    assert Chain(**lost, now=UNTIL).advance() == []
    assert Chain(**lost, now=UNTIL + 1).advance(open_games=1) == []
    over = Chain(**lost, now=UNTIL + 1)
    assert over.advance() == ["void"]
    assert over.errors == ["no draw was proved in time: the stake burns"]


@pytest.mark.parametrize(("satisfied", "sent"), [(True, ["settled"]), (False, ["void"])])
def test_after_the_window_a_drawn_task_is_settled_or_void(satisfied: bool, sent: list[str]) -> None:
    facts: dict[str, Any] = {"newest": BLOCK + 9, "drawn_at": 3, "satisfied": satisfied}
    assert Chain(**facts, now=UNTIL).advance() == []
    assert Chain(**facts, now=UNTIL + 1).advance() == sent
