"""How a solver discovers games of the deployment, most of which do not concern it."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import cast

from protocol.chain.errors import Reverted
from solver.context import Context
from solver.defence import Defence
from solver.metrics import Metrics


def test_a_game_that_cannot_be_read_ends_nothing_and_hides_no_other() -> None:
    asked: list[int] = []
    told: list[tuple[str, object]] = []

    def read(number: int) -> SimpleNamespace:
        asked.append(number)
        if number == 1:
            raise Reverted("DisputeGame.gameOf", "Panic", {"code": 17})
        return SimpleNamespace(task=number)

    context = SimpleNamespace(
        client=SimpleNamespace(
            game=SimpleNamespace(games=lambda: 2, game=read, ahead=list),
            connection=SimpleNamespace(
                view=partial(nullcontext, SimpleNamespace(number=1, hash="0x1", parent="0x0")),
                chain=SimpleNamespace(reorg_depth=8),
            ),
        ),
        catalog=SimpleNamespace(run_store=lambda _task: None),
        database=SimpleNamespace(task=lambda _task: None, tasks=list, live=lambda *_stages: [1]),
        metrics=Metrics(),
        log=SimpleNamespace(warning=lambda event, **about: told.append((event, about["game"]))),
    )
    defence = Defence(cast(Context, context))
    assert not defence.tick()
    assert not defence.tick()
    assert asked == [1, 2]
    assert told == [("game cannot be read", 1)]
