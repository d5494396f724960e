"""One account of a process looks at another account of the same process: neither harms the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.chain.views import TaskStatus
from protocol.node.database import Identity
from protocol.node.party.exits import Exit
from tests.unit.verifier.test_asking import GAME, Asking
from tests.unit.verifier.test_keeper import LOOK, STANDS, Scene
from tests.unit.verifier.test_seats import ME, OTHER
from verifier import accusing, looking
from verifier.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield made
    made.close()


def share(scene: Scene, ours: bool) -> None:
    """Let the look's account belong to this process. If `ours`, the account that is looked at belongs to it too."""
    context: Any = scene.context
    context.terms = lambda _task: SimpleNamespace(segments_per_verifier=1, jurors=3, move_time=20)
    context.work_by = lambda until: until
    if ours:
        context.clients = {ME: context.client, OTHER: context.client}


@pytest.mark.parametrize("ours", [False, True])
def test_a_lock_is_taken_from_a_stranger_alone_that_opened_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    """The seat that is looked at has opened nothing, because the time for opening passed while its process
    was down. Its lock is taken only if the seat belongs to another process than the look.
    """
    monkeypatch.setattr(looking, "digest_parts", lambda *_: None)
    monkeypatch.setattr(looking, "salted_seats", lambda *_: [None])
    scene = Scene(database)
    scene.stands = replace(STANDS, revealed=None)
    share(scene, ours)
    jobs = [job.what for job in looking.jobs(scene.context, scene.seen())]
    assert jobs == ([] if ours else [f"take {LOOK}"])
    assert scene.due() is (Exit.SETTLE if ours else None)


@pytest.mark.parametrize("ours", [False, True])
def test_a_stranger_alone_is_accused(database: Database, ours: bool) -> None:
    scene = Scene(database)
    share(scene, ours)
    assert [job.what for job in accusing.jobs(scene.context, scene.seen())] == (
        [] if ours else [f"accuse {LOOK}"]
    )
    scene.posted = 0
    asked = [job.what for job in looking.asks(scene.context, scene.seen())]
    assert asked == ([] if ours else [f"ask {LOOK}"])


@pytest.mark.parametrize("ours", [False, True])
def test_a_task_with_an_open_accusation_is_not_settled(database: Database, ours: bool) -> None:
    scene = Scene(database)
    scene.stands = replace(STANDS, accused=bytes(32), accusations=1)
    share(scene, ours)
    assert scene.due() is None


def test_a_game_that_asks_about_an_own_account_is_dropped_by_accusing_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game was opened when the account that it asks about belonged to another process. Now the account
    belongs to this process. The contract refuses to drop the game before an accusation, so the look accuses
    that account.
    """
    scene = Asking(database)
    context: Any = scene.context
    context.clients = {ME: context.client, OTHER: context.client}
    scene.drops(TaskStatus.SUBMITTED)
    assert [game for game, _ in scene.accuses(monkeypatch)] == [GAME]
    scene.seat = replace(scene.seat, caught=True)
    assert not scene.accuses(monkeypatch)
    scene.drops(TaskStatus.SUBMITTED)
    assert [call[1] for call in scene.dropped] == [LOOK]
