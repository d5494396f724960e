"""What a finished task has cost its solver, and which open claims and accusations a solver ends.

The other ways in which a solver brings a task to an end are tested in tests/chain/test_solver_exits.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, ItemClaim, JuryView, LookView, Seat, TaskStatus, TaskView
from protocol.dispute.view import Phase
from protocol.node.party.exits import Observation
from protocol.tasks.task import Terms
from solver import settlement
from solver.context import Context
from solver.settlement import GRACE, lost

PRICE = 90 * TOKEN
TERMS = cast(Terms, SimpleNamespace(delay_penalty=5 * TOKEN, stake=500 * TOKEN))


@pytest.mark.parametrize(
    ("status", "drawn_at", "cost"),
    [
        (TaskStatus.SETTLED, 1, {}),
        (TaskStatus.REFUNDED, 0, {"penalty_tokens": 5, "price_tokens": 90}),
        (TaskStatus.SLASHED, 1, {"stake_tokens": 500, "price_tokens": 90}),
        (TaskStatus.VOID, 1, {"price_tokens": 90}),
        (TaskStatus.VOID, 0, {"price_tokens": 45}),
    ],
)
def test_a_loss_is_what_was_taken_and_what_was_not_paid(
    status: TaskStatus, drawn_at: int, cost: dict[str, float]
) -> None:
    audit = SimpleNamespace(audit=lambda _task: SimpleNamespace(drawn_at=drawn_at))
    context = cast(Context, SimpleNamespace(client=SimpleNamespace(audit=audit)))
    view = cast(TaskView, SimpleNamespace(task=7, price=PRICE, status=status))
    assert lost(context, view, TERMS) == cost


VOTED = 1_000
CLAIM = ItemClaim(NOBODY, bond=5, seat=0, item=2, until=0, tensor=0, walk=0, opened=0)
JURY = JuryView(0, pending=False, until=VOTED, yes=0b1, no=0b110)


@pytest.mark.parametrize(
    ("jurors", "claim", "jury", "now", "sent"),
    [
        (3, CLAIM, JURY, VOTED + GRACE, []),
        (3, CLAIM, JURY, VOTED + GRACE + 1, ["close"]),
        (3, CLAIM, replace(JURY, yes=0b110, no=0), VOTED + GRACE + 1, []),
        (3, CLAIM, replace(JURY, yes=0b110, no=0), VOTED + 20 + GRACE + 1, ["close"]),
        (3, CLAIM, None, VOTED, ["drop"]),
        (3, None, None, VOTED, []),
        (0, None, None, VOTED, []),
    ],
)
def test_a_claim_is_ended_once_the_claimant_had_time_to(
    monkeypatch: pytest.MonkeyPatch,
    jurors: int,
    claim: ItemClaim | None,
    jury: JuryView | None,
    now: int,
    sent: list[str],
) -> None:
    """The solver ends an open claim only `GRACE` seconds after the claimant could have ended it. For a task
    whose terms have no juries, no claims are looked up.
    """
    view = cast(TaskView, SimpleNamespace(task=7, status=TaskStatus.SUBMITTED))
    seen = Observation(view, now)
    monkeypatch.setattr(settlement, "observe", lambda _client, _view: seen)
    monkeypatch.setattr(settlement, "exit_due", lambda _seen, _deployment: None)
    begun: list[str] = []
    calls = SimpleNamespace(
        claim_of=lambda _task: claim,
        close=lambda task: ("close", task),
        drop=lambda task: ("drop", task),
    )

    def begin(task: int, what: str, call: Callable[[], tuple[str, int]]) -> None:
        assert call() == (what, task)
        begun.append(what)

    client = SimpleNamespace(
        deployment=None,
        juries=calls if jurors else None,
        audit=SimpleNamespace(jury=lambda _task: jury),
    )
    context = cast(Context, SimpleNamespace(client=client, begin=begin))
    settlement.advance(context, view, cast(Terms, SimpleNamespace(jurors=jurors, move_time=20)))
    assert begun == sent


UNTIL = 1_000
LOOK = 33
ACCUSED = LookView(bytes(32), bytes([1]) * 32, UNTIL, lock=5, game=0, accusations=1, dropped=True)
GAME = 4


@pytest.mark.parametrize(
    ("stands", "phase", "now", "sent"),
    [
        (ACCUSED, Phase.NONE, UNTIL + GRACE, []),
        (ACCUSED, Phase.NONE, UNTIL + GRACE + 1, ["takeUnanswered 33"]),
        (replace(ACCUSED, accused=None), Phase.NONE, UNTIL + GRACE + 1, []),
        (replace(ACCUSED, game=GAME), Phase.STEP, UNTIL + GRACE + 1, []),
        (replace(ACCUSED, game=GAME), Phase.CLOSED, UNTIL + GRACE + 1, ["takeUnanswered 33"]),
    ],
)
def test_an_accusation_is_ended_once_the_look_had_time_to(
    monkeypatch: pytest.MonkeyPatch, stands: LookView, phase: Phase, now: int, sent: list[str]
) -> None:
    """The solver ends an accusation that was not answered in time and is not contested in a game, `GRACE`
    seconds after the look's account could have ended it.
    """
    view = cast(TaskView, SimpleNamespace(task=7, status=TaskStatus.SUBMITTED))
    look = Seat(LOOK, NOBODY, registration=1, until=0, attested=True, released=False, caught=False)
    seen = Observation(view, now, looks=(look,), accusations=1)
    monkeypatch.setattr(settlement, "observe", lambda _client, _view: seen)
    monkeypatch.setattr(settlement, "exit_due", lambda _seen, _deployment: None)
    begun: list[str] = []

    asked: list[tuple[object, ...]] = []

    def begin(task: int, what: str, call: Callable[[], tuple[int, int]]) -> None:
        assert call() == (task, LOOK)
        begun.append(what)

    client = SimpleNamespace(
        deployment=None,
        game=SimpleNamespace(game=lambda _number: SimpleNamespace(phase=phase)),
        looks=SimpleNamespace(
            ask_ahead=lambda *calls: asked.append(calls),
            look=lambda *_at: stands,
            take_unanswered=lambda *at: at,
        ),
    )
    context = cast(Context, SimpleNamespace(client=client, begin=begin))
    settlement.advance(context, view, cast(Terms, SimpleNamespace(jurors=0)))
    assert begun == sent
    assert asked == [("lookOf", [7, LOOK])]
