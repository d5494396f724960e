"""The solver's loop without a chain: what it waits for, what it releases, and when it refuses to start."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.errors import Reverted, RpcUnavailable
from protocol.chain.parameters import TOKEN
from protocol.chain.receipts import Receipt
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.http import NotPublic
from protocol.tasks.bundles import BundleUnavailable
from solver import settlement, stakes
from solver.assignment import Assignment
from solver.database import Stage
from solver.errors import SolverError
from solver.machine import ASSUMED, UNMEASURED, Machine
from solver.node import SolverNode
from solver.orders import Mode, keep_mode, load_mode
from solver.settings import SolverSettings

TASK = 7
ME, RIVAL = "0x" + "cd" * 20, "0x" + "ab" * 20


class Stand:
    """A node on a simulated chain. The chain has a few fields, and the tests set them."""

    def __init__(self, folder: Path) -> None:
        self.status = TaskStatus.TRAINING
        self.bidder = ME
        self.tokens = 0
        self.locked = 0
        self.chain_id = 1
        self.folder = folder
        self.viewing = False
        self.funded: list[int] = []
        self.earlier = 0
        """Number of earlier deployments: 0 or 1."""
        self.booked = 0
        self.outside = 0
        """How often a task was read without an open view of a block."""

    @contextmanager
    def view(self) -> Iterator[SimpleNamespace]:
        """A view of one block."""
        self.viewing = True
        yield SimpleNamespace(time=1_000)
        self.viewing = False

    def task(self, task: int) -> SimpleNamespace:
        """The fields of the task. Counts the call in `outside` if no view of a block is open. Raises Reverted
        if the task's status is NONE.
        """
        if self.status is TaskStatus.NONE:
            raise Reverted("TaskMarket.taskOf", "UnknownTask", {"task": task})
        self.outside += not self.viewing
        return SimpleNamespace(
            task=task,
            status=self.status,
            stake=1,
            bidder=self.bidder,
            price=2 * TOKEN,
            posted_at=lambda _period: 0,
        )

    def task_if_posted(self, task: int) -> SimpleNamespace | None:
        """The task's view; None if its status is NONE."""
        return None if self.status is TaskStatus.NONE else self.task(task)

    def fund(self, due: int) -> list[Receipt]:
        """Record an amount brought into the vault."""
        self.funded.append(due)
        return []

    def book(self) -> None:
        """Count an update of a ledger."""
        self.booked += 1

    def node(self, machine: Machine | None = ASSUMED, **settings: object) -> SolverNode:
        """A node that polls often, on any free ports. Its database says that it trains `TASK`."""
        view = SimpleNamespace
        client = SimpleNamespace(
            connection=SimpleNamespace(
                genesis="0x" + "ab" * 32,
                chain_id=self.chain_id,
                view=self.view,
                is_final_at=lambda _time: True,
            ),
            deployment=SimpleNamespace(beacon=DEVELOPMENT),
            beacon=SimpleNamespace(is_signed_round=None),
            tend=lambda: None,
            tokens=lambda: (0, self.tokens),
            fund=self.fund,
            is_over_for_good=lambda _task: True,
            address=ME,
            sender=None,
            contracts={},
            game=SimpleNamespace(games=lambda: 0),
            market=SimpleNamespace(
                address="0xmarket",
                tasks=lambda: 0,
                statuses=lambda _tasks: [],
                task=self.task,
                task_if_posted=self.task_if_posted,
                terms=lambda _task: view(
                    delay_penalty=TOKEN, stake=5 * TOKEN, bidding_period=10, bundle_hash=bytes(32)
                ),
            ),
            vault=SimpleNamespace(free=lambda _who: 0, lock_of=lambda _lock: view(remaining=self.locked)),
        )
        old = SimpleNamespace(**vars(client) | {"market": SimpleNamespace(**vars(client.market))})
        old.market.address = "0xformer"
        client.for_deployment = lambda _deployment: old
        given = {"port": 0, "monitor_port": 0, "poll": 0.01, **settings}
        node = SolverNode(
            cast(Client, client),
            SolverSettings.model_validate(given),
            Home(self.folder),
            earlier=[cast(Deployment, None)] * self.earlier,
            machine=machine,
        )
        for one in (*node._earlier, node):  # this chain has no events for a ledger
            cast(Any, one)._bookkeeper = SimpleNamespace(book=self.book)
        node.context.database.put(TASK, Stage.TRAINING)
        return node


class Work:
    """An assignment that notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.ended: Future[None] = Future()
        self.refused: SolverError | None = None
        self.run_store = None
        self.unsubmitted = False
        self.idle = True
        self.failed_after = 0.0

    def tick(self, _view: object) -> None:
        """Record in `refused` that the market refuses the run."""
        self.refused = SolverError("the market refuses this run")

    def close(self, wait: bool = True) -> None:
        """Record that it was closed."""
        self.done.append(f"closed, wait={wait}")

    def give_back(self) -> Future[None]:
        """Record that the assignment was given back. The returned future, `ended`, is done when the
        assignment has ended.
        """
        self.done.append("given back")
        return self.ended

    def retire(self) -> None:
        """Record that it was retired."""
        self.done.append("retired")


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


@pytest.fixture
def node(stand: Stand) -> Iterator[SolverNode]:
    made = stand.node()
    yield made
    made.context.database.close()


@pytest.fixture
def work(node: SolverNode) -> Work:
    """The assignment of a task that the node has won."""
    made = Work()
    node._assignments.put(TASK, cast(Assignment, made))
    return made


def test_a_task_that_is_over_is_let_go(stand: Stand, node: SolverNode, work: Work) -> None:
    stand.status = TaskStatus.REFUNDED
    node._tick()
    assert work.done == ["retired"]
    assert TASK not in node._assignments
    row = node.context.database.task(TASK)
    assert row is not None
    assert (row.stage, row.note) == (Stage.OVER, "refunded")
    assert node._outcome(once=True) is None, "the ledger is brought up to date"
    node.context.sends.close()
    node._tick()
    assert stand.booked == 1
    assert node._outcome(once=True) is ExitCode.FINE


def test_a_task_counts_as_over_only_once_its_assignment_is_retired(
    stand: Stand, node: SolverNode, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes the data of a task that is over, and may run at any time."""
    stages: list[Stage] = []

    def retire() -> None:
        row = node.context.database.task(TASK)
        assert row is not None
        stages.append(row.stage)

    monkeypatch.setattr(work, "retire", retire)
    stand.status = TaskStatus.REFUNDED
    node._tick()
    assert stages == [Stage.TRAINING]
    row = node.context.database.task(TASK)
    assert row is not None
    assert row.stage is Stage.OVER


def test_a_task_whose_post_was_removed_has_no_lock(stand: Stand, node: SolverNode) -> None:
    """The stake is deposited before the first look at the tasks."""
    stand.locked = 10
    node.context.database.put(TASK, Stage.OUTBID)
    assert stakes.locked(node.context) == 10
    stand.status = TaskStatus.NONE
    assert stakes.locked(node.context) == 0


def test_a_withdrawal_that_failed_is_tried_again(
    stand: Stand, node: SolverNode, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    del work
    withdrawn: list[int] = []
    failures = [RpcUnavailable("the chain", TimeoutError())]

    def withdraw(_context: object, keep: int) -> None:
        if failures:
            raise failures.pop()
        withdrawn.append(keep)

    monkeypatch.setattr(settlement, "withdraw", withdraw)
    monkeypatch.setattr(node._failures, "rests", lambda _task: False)
    stand.status = TaskStatus.SETTLED
    node._tick()
    node.context.sends.close()
    assert node._outcome(once=True) is None
    node._tick()
    node.context.sends.close()
    node._tick()
    assert (withdrawn, node._outcome(once=True)) == ([node.context.settings.stake_units], ExitCode.FINE)


def test_a_node_that_drains_ends_once_it_has_no_task_left(stand: Stand, node: SolverNode) -> None:
    node._operation.tell(Mode.DRAINING)
    for stage in (Stage.BID, Stage.OUTBID, Stage.TRAINING, Stage.SUBMITTED):
        node.context.database.put(TASK, stage)
        assert node._outcome(once=False) is None
    node.context.database.put(TASK, Stage.OVER)
    assert node._outcome(once=False) is ExitCode.FINE
    node._end_well()
    assert (stand.booked, load_mode(Home(stand.folder))) == (1, Mode.WORKING)
    node.context.database.put(TASK, Stage.OVER)
    assert node._outcome(once=False) is None, "it works again"


def test_a_node_that_was_told_to_pause_or_was_not_measured_takes_no_work(stand: Stand) -> None:
    keep_mode(Home(stand.folder), Mode.PAUSED)
    node = stand.node()
    node.context.database.put(TASK, Stage.OVER)
    node._tick()
    assert not node._may_take()
    node._operation.tell(Mode.WORKING)
    node._tick()
    assert node._may_take()
    node.context.database.close()
    unmeasured = stand.node(machine=Machine(2e9, 2e9, "none"))
    unmeasured.context.database.put(TASK, Stage.OVER)
    unmeasured._tick()
    assert not unmeasured._may_take()
    assert "run `solver bench`" in unmeasured._why_not()
    unmeasured.context.database.close()


def test_a_run_that_the_market_refuses_keeps_no_processes(node: SolverNode, work: Work) -> None:
    node._tick()
    assert work.done == ["closed, wait=False"]
    assert TASK not in node._assignments
    node._tick()  # and it is not restarted
    assert TASK not in node._assignments
    with pytest.raises(SolverError, match="refuses this run"):
        node._outcome(once=False)


def test_a_task_that_is_won_again_is_trained_once_its_first_training_has_ended(
    stand: Stand, node: SolverNode, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []

    def load(task: int) -> Assignment:
        loads.append(task)
        return cast(Assignment, Work())

    monkeypatch.setattr(node._assignments, "load", load)
    stand.status = TaskStatus.BIDDING
    node._work_on(TASK)
    assert node._assignments.get(TASK) is None
    assert not loads
    work.ended.set_result(None)
    while node._assignments.get(TASK) is None:
        sleep(0.001)
    assert loads == [TASK]


@pytest.mark.parametrize(
    ("status", "bidder", "stage"),
    [
        (TaskStatus.TRAINING, RIVAL, Stage.OUTBID),
        (TaskStatus.SLASHED, RIVAL, Stage.OUTBID),
        (TaskStatus.BIDDING, ME, Stage.BID),
        (TaskStatus.NONE, ME, Stage.OUTBID),
    ],
)
def test_a_task_that_a_reorganisation_takes_back_is_trained_no_more(
    stand: Stand, node: SolverNode, work: Work, status: TaskStatus, bidder: str, stage: Stage
) -> None:
    stand.status, stand.bidder = status, bidder
    for task in node._taken():
        node._work_on(task)
    assert work.done == ["given back"]
    assert TASK not in node._assignments
    row = node.context.database.task(TASK)
    assert row is not None
    assert row.stage is stage
    assert node._is_sound(), "it still bids"
    assert node._outcome(once=False) is None


def test_a_task_whose_bundle_is_lost_ends_nothing_and_holds_no_other(
    node: SolverNode, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = TASK - 1
    node.context.database.put(lost, Stage.SUBMITTED)

    def load(*_about: object) -> Assignment:
        raise BundleUnavailable("nothing there")

    monkeypatch.setattr("solver.assignment.Assignment", load)
    deadline = monotonic() + 20
    failed = {"error": "BundleUnavailable", "kind": "task"}
    counted = node.context.metrics.registry.get_sample_value
    while counted("assay_solver_failures_total", failed) is None:
        assert monotonic() < deadline
        node._tick()
    assert "closed, wait=False" in work.done  # the other task had its turn meanwhile
    assert node._at_stake() == {"tasks_at_stake": [lost]}
    assert node._outcome(once=True) is None


def test_all_that_a_round_decides_is_of_one_block(stand: Stand, node: SolverNode, work: Work) -> None:
    node._tick()
    assert work.refused, "the task was looked at"
    assert stand.outside == 0


def test_without_the_stake_nothing_is_begun(stand: Stand, node: SolverNode) -> None:
    node.context.database.put(TASK, Stage.OVER)
    stand.tokens = 999 * TOKEN
    with pytest.raises(
        SolverError, match=r"expected 1,000 tokens .* got 999; send tokens to it, .* or lower --stake"
    ):
        node._fund()


@pytest.mark.usefixtures("work")
def test_without_the_stake_a_task_that_was_won_is_still_defended(node: SolverNode) -> None:
    node._fund()


def test_without_the_stake_a_bid_is_still_followed(stand: Stand, node: SolverNode) -> None:
    node.context.database.put(TASK, Stage.BID)
    stand.locked = 10
    node._fund()


def test_on_a_real_chain_no_address_of_this_machine_is_announced(stand: Stand) -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(NotPublic, match="say with --url where strangers find this server"):
            stand.node(host=host).run()


@pytest.fixture
def both(stand: Stand) -> Iterator[tuple[SolverNode, SolverNode]]:
    """The node of an earlier deployment, and the node of the newest deployment. The second node has no task."""
    stand.earlier = 1
    new = stand.node()
    (old,) = new._earlier
    new.context.database.put(TASK, Stage.OVER)
    yield old, new
    for node in (old, new):
        node.context.database.close()


@pytest.mark.parametrize("stage", [Stage.BID, Stage.TRAINING])
def test_no_work_is_taken_while_the_machine_is_bound_under_earlier_contracts(
    both: tuple[SolverNode, SolverNode], stage: Stage
) -> None:
    old, new = both
    assert (old._may_take(), new._may_take()) == (False, True)
    old.context.database.put(TASK, stage)
    assert not new._may_take()
    old.context.database.put(TASK, Stage.SUBMITTED)
    assert new._may_take()
    assert len(new._elsewhere()) == 1
    old._finished[TASK] = TaskStatus.SLASHED
    assert not new._may_take(), "this machine computes wrong bits"


def test_a_task_under_earlier_contracts_outlasts_a_missing_stake(
    stand: Stand, both: tuple[SolverNode, SolverNode]
) -> None:
    old, new = both
    old.context.database.put(TASK, Stage.SUBMITTED)
    new._fund()  # its tokens are in the earlier vault
    assert new._outcome(once=True) is None
    stand.status = TaskStatus.SETTLED
    new._finished[TASK] = TaskStatus.SETTLED
    assert new._outcome(once=True) is None, "a task is left"
    old.context.database.put(TASK, Stage.OVER)
    assert new._outcome(once=True) is ExitCode.FINE
    with pytest.raises(SolverError, match="lower --stake"):
        new._fund()


def test_the_stake_is_brought_in_when_the_earlier_contracts_have_given_it_back(
    stand: Stand, both: tuple[SolverNode, SolverNode]
) -> None:
    old, new = both
    old.context.database.put(TASK, Stage.SUBMITTED)
    new._fund()
    new._tick()
    assert not new.context.sends.any
    old.context.database.put(TASK, Stage.OVER)
    stand.tokens = 1_000 * TOKEN
    new._tick()
    new.context.sends.close()
    new._tick()
    assert stand.funded == [1_000 * TOKEN], "once"


def test_without_a_measurement_there_are_bids_on_a_development_chain_alone(stand: Stand) -> None:
    for chain_id, why in ((31337, ""), (1, UNMEASURED)):
        stand.chain_id = chain_id
        node = stand.node(machine=None)
        assert node._why_not() == why
        node._close()


def test_what_the_stakes_of_taken_tasks_need_stays_in_the_vault(stand: Stand, node: SolverNode) -> None:
    """The settings' stake is less than that of the task in training, and another task is settled."""
    node.context.settings.__dict__["stake"] = 1
    node.context.database.put(TASK + 1, Stage.OVER)
    assert node._kept() == 5 * TOKEN - TOKEN
    stand.status = TaskStatus.SUBMITTED
    node.context.database.put(TASK, Stage.SUBMITTED)
    assert node._kept() == TOKEN
    stand.locked = TOKEN
    assert node._kept() == 0
