"""Which tasks a verifier looks at. It looks at open tasks at once. It checks past tasks in batches, and looks
at those in which its accounts may be bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.errors import RpcUnavailable
from protocol.chain.views import TaskStatus
from protocol.node.database import Identity
from verifier.database import UNTIL_OVER, Database
from verifier.open_tasks import PAST_A_LOOK, OpenTasks

ME, OTHER = "0x" + "01" * 20, "0x" + "02" * 20
FINAL, HEAD = 90, "latest"


class Chain:
    """Tasks as one node shows them; `final` are their statuses in the final block."""

    def __init__(self, *statuses: TaskStatus) -> None:
        self.tasks = list(statuses)
        self.final = list(statuses)
        self.claimant = 0
        self.claim: str | None = None
        self.seats: list[str] = []
        self.looks: list[str] = []
        self.asked = 0

    def statuses(self, tasks: Sequence[int], block: int | str = HEAD) -> list[TaskStatus]:
        """The statuses of tasks."""
        of = self.final if block == FINAL else self.tasks
        self.asked += len(tasks)
        return [of[task - 1] for task in tasks]

    @property
    def client(self) -> Client:
        """A client of this chain."""

        def places(accounts: Sequence[str]) -> list[SimpleNamespace]:
            return [SimpleNamespace(account=account) for account in accounts]

        audit = SimpleNamespace(
            ahead=list,
            audit=lambda _task: SimpleNamespace(claimant=self.claimant, looks=len(self.looks)),
            seats=lambda _task: places(self.seats),
            looks=lambda _task: places(self.looks),
        )
        claim_of: Any = lambda _task: None if self.claim is None else SimpleNamespace(account=self.claim)  # noqa: E731
        return cast(
            Client,
            SimpleNamespace(
                market=SimpleNamespace(tasks=lambda: len(self.tasks), statuses=self.statuses),
                audit=audit,
                juries=SimpleNamespace(ahead=list, claim_of=claim_of),
                connection=SimpleNamespace(final_block=lambda: FINAL),
            ),
        )


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", Identity("0xchain", "0xmarket", ME))
    yield made
    made.close()


def test_open_tasks_are_looked_at_before_a_long_past_is_gone_through(database: Database) -> None:
    chain = Chain(*[TaskStatus.VOID] * (PAST_A_LOOK + 5), TaskStatus.BIDDING)
    tasks = OpenTasks(chain.client, database, (), {ME})
    tasks.find()
    assert tasks.numbers() == [PAST_A_LOOK + 6]
    assert len(tasks) == PAST_A_LOOK + 6
    assert [tasks.finish_past() for _ in range(3)] == [PAST_A_LOOK, 5, 0]
    assert len(tasks) == 1
    assert all(database.is_finished(task) for task in range(1, PAST_A_LOOK + 6))


def test_nothing_is_asked_of_what_is_finished(database: Database) -> None:
    chain = Chain(*[TaskStatus.REFUNDED] * 3)
    first = OpenTasks(chain.client, database, (), {ME})
    first.find()
    assert first.finish_past() == 3
    chain.asked = 0
    again = OpenTasks(chain.client, database, (), {ME})
    again.find()
    assert (again.numbers(), len(again), chain.asked) == ([], 0, 0)


OWN: list[dict[str, Any]] = [
    {"seats": [OTHER, ME]},
    {"seats": [OTHER], "looks": [ME]},
    {"seats": [OTHER], "claimant": 1},
    {"seats": [OTHER], "claim": ME},
]


@pytest.mark.parametrize("own", OWN, ids=["a seat", "a look", "a jury", "a claim"])
def test_a_past_task_in_which_an_own_account_may_be_bound_is_looked_at(
    database: Database, own: dict[str, Any]
) -> None:
    chain = Chain(TaskStatus.SETTLED)
    for name, value in own.items():
        setattr(chain, name, value)
    tasks = OpenTasks(chain.client, database, (), {ME})
    tasks.find()
    assert (tasks.numbers(), tasks.finish_past()) == ([], 0)
    assert tasks.numbers() == [1]
    assert not database.is_finished(1)


def test_a_past_task_of_others_is_finished(database: Database) -> None:
    chain = Chain(TaskStatus.SETTLED)
    chain.seats, chain.looks, chain.claim = [OTHER], [OTHER], OTHER
    tasks = OpenTasks(chain.client, database, (), {ME})
    tasks.find()
    assert tasks.finish_past() == 1


def test_a_past_task_whose_result_is_held_is_looked_at(database: Database) -> None:
    database.hold(1, UNTIL_OVER)
    tasks = OpenTasks(Chain(TaskStatus.SETTLED).client, database, (), {ME})
    tasks.find()
    assert tasks.numbers() == [1]


def test_an_end_that_is_not_final_is_waited_for(database: Database) -> None:
    chain = Chain(TaskStatus.VOID, TaskStatus.VOID)
    chain.final = [TaskStatus.SUBMITTED, TaskStatus.VOID]
    tasks = OpenTasks(chain.client, database, (), {ME})
    tasks.find()
    assert tasks.finish_past() == 1
    assert (database.is_finished(1), len(tasks)) == (False, 1)
    chain.final = chain.tasks
    assert tasks.finish_past() == 1
    assert len(tasks) == 0


def test_what_a_reorganisation_takes_away_is_found_again(database: Database) -> None:
    chain = Chain(TaskStatus.VOID, TaskStatus.BIDDING)
    tasks = OpenTasks(chain.client, database, (), {ME})
    tasks.find()
    chain.tasks, gone = [], chain.tasks
    tasks.find()
    assert (tasks.numbers(), len(tasks)) == ([], 0)
    chain.tasks = [TaskStatus.BIDDING, gone[1]]
    tasks.find()
    assert tasks.numbers() == [1, 2]


def test_only_chosen_tasks_are_looked_at(database: Database) -> None:
    tasks = OpenTasks(Chain(*[TaskStatus.BIDDING] * 3).client, database, (2, 7), {ME})
    tasks.find()
    assert tasks.numbers() == [2]


def test_a_past_task_that_cannot_be_read_is_read_later(database: Database) -> None:
    chain = Chain(TaskStatus.VOID)
    client = chain.client
    tasks = OpenTasks(client, database, (), {ME})
    tasks.find()
    right = client.juries.claim_of

    def away(_task: int) -> None:
        raise RpcUnavailable("http://127.0.0.1:1", OSError())

    client.juries.claim_of = away  # type: ignore[method-assign, assignment]
    with pytest.raises(RpcUnavailable):
        tasks.finish_past()
    client.juries.claim_of = right  # type: ignore[method-assign]
    assert (len(tasks), tasks.finish_past()) == (1, 1)
