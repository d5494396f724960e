"""Bids on a simulated chain: bundles that fail, bids that are beaten, refusals, and own tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.errors import RpcRefused
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.party.eligible import Eligible
from protocol.tasks.bundles import BundleUnavailable, WrongFile
from protocol.tasks.bundles.write import MANIFEST
from solver import fetching
from solver.auction import Auction
from solver.context import Context
from solver.database import Database, Stage
from solver.settings import SolverSettings
from tests.unit.solver import tiny
from tests.unit.solver.auctions import ME, REORG_DEPTH, RIVAL, Stand

LATE = BundleUnavailable("bundle", expected="it", got="nothing", remedy="ask again")


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    made = Stand(tmp_path, monkeypatch)
    yield made
    made.go.set()
    made.database.close()


@pytest.fixture
def bundle(stand: Stand) -> str:
    """The name of the bundle's folder among the candidates."""
    return stand.market.offer.bundle_hash.hex()


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), MemoryError()])
def test_a_bundle_that_there_is_no_room_for_ends_nothing(stand: Stand, failure: BaseException) -> None:
    stand.failure = failure
    stand.market.post(1)
    stand.tick(2)
    assert stand.stage(1) == (
        Stage.REFUSED,
        f"no room for its bundle here: {type(failure).__name__}: {failure}",
    )
    assert stand.candidates == []
    stand.tick()
    assert not stand.market.bids


def test_a_bundle_that_finds_a_defect_costs_its_task_alone(stand: Stand) -> None:
    stand.failure = UnicodeError("not a name")
    stand.market.post(1)
    stand.tick(2)
    assert stand.stage(1) == (Stage.REFUSED, "its bundle cannot be read: UnicodeError")
    stand.failure = None
    stand.market.post(2)
    stand.tick(2)
    assert stand.market.bids == [90 * TOKEN]


def test_the_bundle_of_a_bid_is_kept_and_one_without_a_bid_is_not(stand: Stand, bundle: str) -> None:
    stand.market.post(1)
    stand.tick(2)
    assert stand.stage(1) == (Stage.BID, "asked for 90 tokens")
    assert stand.candidates == [bundle]


def test_a_bundle_goes_when_no_task_wants_it_and_nothing_writes_to_it(stand: Stand, bundle: str) -> None:
    stand.go.clear()
    stand.market.post(1)
    stand.market.post(2)
    stand.tick()
    while stand.candidates != [bundle]:
        sleep(0.001)
    stand.market.change(1, status=TaskStatus.TRAINING, bidder=RIVAL)
    stand.market.change(2, status=TaskStatus.TRAINING, bidder=RIVAL)
    stand.tick()
    assert stand.stage(1) is None
    assert stand.candidates == [bundle]  # it is still being fetched
    stand.go.set()
    while stand.candidates:
        sleep(0.001)


def test_a_server_that_is_late_is_asked_again(stand: Stand, bundle: str) -> None:
    stand.failure = LATE
    stand.market.post(1)
    stand.tick(2)
    assert stand.stage(1) is None
    stand.failure = None
    stand.rest(1)
    stand.tick(2)
    assert stand.market.bids == [90 * TOKEN]
    assert stand.candidates == [bundle]


def test_a_server_that_is_late_is_asked_after_a_rest_as_long_as_it_took(stand: Stand) -> None:
    stand.failure = LATE
    stand.market.post(1)
    stand.tick()
    stand.auction._fetching._began[1] -= 1_000.0  # as if it had taken this long
    stand.tick(3)
    assert stand.failures.rests(1)
    assert len(stand.tries) == 1


def test_a_server_of_another_file_is_asked_again_after_rests_that_double(
    stand: Stand, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "LEAST_REST", 60.0)  # too long to end during this test
    stand.failure = WrongFile("bundle hash", expected="one", got="another", remedy="ask again")
    stand.market.post(1)
    lost = []
    for _ in range(4):
        stand.tick(2)
        assert stand.failures.rests(1)
        lost.append(stand.auction._fetching.seconds_lost(1))
        stand.failures._rests_until.clear()
    assert lost[0] >= 60
    assert all(later >= 2 * earlier for earlier, later in pairwise(lost))
    stand.failure = None
    stand.tick(2)
    assert stand.candidates == [bundle]


def test_a_try_is_as_long_as_all_before_it(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "FIRST_TRY", 1e-9)
    stand.failure = LATE
    stand.market.post(1)
    for _ in range(3):
        stand.tick(2)
        stand.rest(1)
    first, second, third = (seconds for _, seconds in stand.tries)
    assert first < second < third


def test_a_bundle_that_was_not_served_waits_for_those_not_asked_for(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "FETCHES", 1)
    stand.failure = LATE
    stand.market.post(1)
    stand.tick(2)
    stand.rest(1)
    stand.market.post(2)
    stand.market.bundles[2] = b"2" * 32
    stand.tick()
    assert [bundle for bundle, _ in stand.tries[1:]] == [b"2" * 32]


def test_slow_servers_keep_nobody_from_a_bundle_that_is_here(stand: Stand) -> None:
    stand.go.clear()
    for task in range(1, fetching.FETCHES + 1):
        stand.market.post(task)
        stand.market.bundles[task] = bytes([task]) * 32
    stand.tick()
    stand.market.post(fetching.FETCHES + 1)
    here = stand.candidates_folder / stand.market.offer.bundle_hash.hex()
    here.mkdir()
    (here / MANIFEST).touch()
    while not stand.market.bids:
        stand.tick()
    assert stand.stage(fetching.FETCHES + 1) == (Stage.BID, "asked for 90 tokens")


def test_what_an_earlier_process_weighed_is_deleted(stand: Stand, bundle: str) -> None:
    for name in (bundle, "00" * 32):
        (stand.candidates_folder / name).mkdir()
    stand.market.post(1)
    stand.database.put(1, Stage.BID)
    stand.market.change(1, bidder=ME)
    stand.tick()
    assert stand.candidates == [bundle]


def test_a_bid_waits_until_its_number_cannot_become_another_tasks(stand: Stand) -> None:
    stand.final = 0
    stand.market.post(1)
    stand.market.bundles[1] = b"1" * 32
    stand.tick(3)
    assert (stand.market.bids, stand.stage(1)) == ([], None)
    stand.market.bundles[1] = b"2" * 32  # a re-organisation has put another task in its place
    stand.tick(3)
    stand.final = 90  # when it was posted
    stand.tick()
    assert stand.market.bids == [90 * TOKEN]
    assert [bundle for bundle, _ in stand.tries] == [b"1" * 32, b"2" * 32]
    assert stand.candidates == [(b"2" * 32).hex()]


def test_what_was_fetched_for_another_task_of_the_same_number_is_not_bid_on(stand: Stand) -> None:
    stand.go.clear()
    stand.market.post(1)
    stand.market.bundles[1] = b"1" * 32
    stand.tick()
    stand.market.bundles[1] = b"2" * 32
    stand.go.set()
    while not stand.market.bids:
        stand.tick()
    assert [bundle for bundle, _ in stand.tries] == [b"1" * 32, b"2" * 32]


def test_a_bid_waits_no_longer_than_the_bidding_allows(stand: Stand) -> None:
    """A look at the chain and a transaction together take 2.5 s. The last moment for a bid is twice that
    long, 5 s, before the bidding ends.
    """
    stand.final = 0
    stand.market.post(1)
    stand.now = 94
    stand.tick(3)
    assert not stand.market.bids
    stand.now = 95
    stand.tick()
    assert stand.market.bids == [90 * TOKEN]
    stand.market.change(1, bidder=RIVAL, price=80 * TOKEN, bids_until=105, overtime=5)
    stand.tick()
    assert len(stand.market.bids) == 1
    stand.now = 100
    stand.tick()
    assert len(stand.market.bids) == 2


def test_a_lower_bid_on_another_task_of_the_same_number_is_not_answered(stand: Stand) -> None:
    stand.final, stand.now = 0, 95
    stand.market.post(1)
    stand.tick(2)
    stand.market.bundles[1] = b"2" * 32
    stand.market.change(1, bidder=RIVAL, price=80 * TOKEN)
    stand.tick()
    assert stand.market.bids == [90 * TOKEN]
    assert stand.stage(1) == (Stage.OUTBID, "a re-organisation gave its number to another task")


def test_a_bid_whose_post_was_removed_holds_up_no_other_task(stand: Stand) -> None:
    stand.final, stand.now = 0, 95
    stand.market.post(1)
    stand.tick(2)
    stand.market.removed.add(1)
    stand.market.post(2)
    stand.tick(2)
    assert stand.stage(1) == (Stage.OUTBID, "a re-organisation removed its post")
    assert stand.stage(2) == (Stage.BID, "asked for 90 tokens")
    assert list(stand.context.engaged()) == [2]
    assert stand.auction.owed() > 0
    stand.market.removed.clear()  # posted again, and the bid is mined again
    stand.tick()
    row = stand.stage(1)
    assert row is not None
    assert row[0] is Stage.BID
    stand.market.removed.add(1)
    stand.tick()
    stand.block += REORG_DEPTH
    stand.tick()
    assert stand.stage(1) == (Stage.REFUSED, "a re-organisation removed its post")


@pytest.mark.parametrize("stage", [Stage.BID, Stage.TRAINING, Stage.SUBMITTED])
def test_a_removed_post_that_rests_after_a_failure_holds_up_no_other_task(stand: Stand, stage: Stage) -> None:
    """A task that rests is not followed, so its row still says that it is bid on, trained or defended."""
    stand.database.put(1, stage)
    stand.failures.note(1, OSError(), 1e9)
    stand.market.post(1)
    stand.market.removed.add(1)
    stand.market.post(2)
    stand.tick(2)
    assert stand.stage(2) == (Stage.BID, "asked for 90 tokens")


def test_terms_are_kept_once_their_post_is_final(stand: Stand) -> None:
    real = cast(Any, SimpleNamespace(client=stand.context.client, _terms={}))
    stand.market.post(1)
    for stand.final, number, seen in ((0, 1, 1), (0, 2, 2), (90, 3, 3), (90, 4, 3)):
        stand.market.bundles[1] = bytes([number]) * 32
        assert Context.terms(real, 1).bundle_hash == bytes([seen]) * 32


def test_terms_are_read_also_from_a_node_that_does_not_know_what_is_final(stand: Stand) -> None:
    def refuse(_time: int) -> bool:
        raise RpcRefused("block finalized", "unknown block", "use another node")

    real = cast(Any, SimpleNamespace(client=stand.context.client, _terms={}))
    stand.context.client.connection.is_final_at = refuse  # type: ignore[method-assign, assignment]
    stand.market.post(1)
    for number in (1, 2):
        stand.market.bundles[1] = bytes([number]) * 32
        assert Context.terms(real, 1).bundle_hash == bytes([number]) * 32


def test_a_bid_that_came_after_its_submitter_took_the_task_back_is_given_up(stand: Stand) -> None:
    stand.market.post(1)

    def too_late(task: int, price: int) -> None:
        del price
        stand.market.change(task, status=TaskStatus.REFUNDED)

    stand.market.bid = too_late  # type: ignore[method-assign]
    stand.tick(3)
    assert stand.stage(1) == (Stage.OUTBID, "refunded")
    stand.block += REORG_DEPTH
    stand.tick()
    assert stand.stage(1) == (Stage.REFUSED, "refunded")
    assert stand.candidates == []


@pytest.fixture
def beaten(stand: Stand) -> Stand:
    """A solver whose bid is beaten by a rival that asks for less than the solver's costs."""
    stand.market.post(1)
    stand.tick(2)
    stand.market.change(1, bidder=RIVAL, price=1)
    stand.tick()
    found = stand.stage(1)
    assert found is not None
    assert found[0] is Stage.OUTBID
    return stand


def test_when_the_better_bid_is_gone_its_own_stands_again(beaten: Stand, bundle: str) -> None:
    beaten.market.change(1, bidder=ME, price=90 * TOKEN)
    beaten.tick()
    assert beaten.stage(1) == (Stage.BID, "")
    assert beaten.candidates == [bundle]


def test_when_the_assignment_to_another_is_gone_it_trains(beaten: Stand, bundle: str) -> None:
    beaten.market.change(1, status=TaskStatus.TRAINING)
    beaten.tick()
    beaten.block += REORG_DEPTH - 1
    beaten.tick()
    beaten.market.change(1, bidder=ME)
    beaten.tick()
    assert beaten.stage(1) == (Stage.TRAINING, "")
    assert beaten.candidates == [bundle]


def test_a_bid_is_given_up_when_what_beat_it_is_deep(beaten: Stand) -> None:
    beaten.market.change(1, status=TaskStatus.TRAINING)
    beaten.block += REORG_DEPTH
    beaten.tick()
    found = beaten.stage(1)
    assert found is not None
    assert found[0] is Stage.REFUSED
    assert found[1].startswith("it would pay at most 0 tokens, its floor is ")
    assert beaten.candidates == []


def test_a_beaten_bid_keeps_nobody_from_the_next_task(beaten: Stand) -> None:
    beaten.market.post(2)
    beaten.tick(2)
    found = beaten.stage(2)
    assert found is not None
    assert found[0] is Stage.BID


@pytest.mark.parametrize(("spare", "bids"), [(0, 1), (-1, 0)])
def test_the_stake_of_a_task_that_is_being_trained_is_kept_free_for_it(
    stand: Stand, spare: int, bids: int
) -> None:
    """The delay penalty is locked until the submission, which releases it and locks the whole stake."""
    stand.market.post(1)
    stand.market.change(1, status=TaskStatus.TRAINING, bidder=ME)
    stand.database.put(1, Stage.TRAINING)
    stand.market.post(2)
    offer = stand.market.offer
    stand.free = offer.stake - offer.delay_penalty + offer.stake + spare
    stand.tick(2)
    assert len(stand.market.bids) == bids


def test_a_stake_that_is_locked_is_not_kept_free_again(stand: Stand) -> None:
    """The chain shows the submission before the database row does."""
    stand.market.post(1)
    stand.market.change(1, status=TaskStatus.SUBMITTED, bidder=ME)
    stand.database.put(1, Stage.TRAINING)
    stand.market.post(2)
    stand.free = stand.market.offer.stake
    stand.tick(2)
    assert len(stand.market.bids) == 1


def test_a_task_whose_seats_would_stay_empty_is_not_bid_on(stand: Stand) -> None:
    stand.eligible = Eligible((RIVAL,) * 2, slots=8, registered=8)
    stand.market.post(1)
    stand.tick(2)
    refused = "2 verifiers take 1 seats and juries of 0, 3 are asked for (min_eligible)"
    assert stand.stage(1) == (Stage.REFUSED, refused)
    assert not stand.market.bids


def test_a_task_that_a_smaller_share_of_the_stake_takes_is_not_bid_on(stand: Stand) -> None:
    """Three eligible accounts would be enough by number. But the submitter may own all of them, so the share
    of the registered stake that they hold counts too.
    """
    stand.eligible = Eligible((RIVAL,) * 3, slots=3, registered=8, unmet={"seat_fee": 4, "period": 1})
    stand.market.post(1)
    stand.tick(2)
    refused = (
        "its terms are taken by 3 of 8 slots of registered stake, a share of 0.375, 0.5 is asked for (min_share); "
        "others are passed over, by what their offers ask: period 1, seat_fee 4"
    )
    assert stand.stage(1) == (Stage.REFUSED, refused)
    assert not stand.market.bids
    cast(Any, stand.context).settings = SolverSettings(min_share=0.375)
    stand.market.post(2)
    stand.tick(2)
    assert stand.stage(2) == (Stage.BID, "asked for 90 tokens")


def test_an_auction_that_ends_loses_its_bid_to_a_lower_one_and_makes_no_other(stand: Stand) -> None:
    stand.market.post(1)
    stand.tick(2)
    assert len(stand.market.bids) == 1
    stand.auction = Auction(stand.context, stand.failures, ends=True)
    stand.market.change(1, bidder=RIVAL, price=10 * TOKEN)
    stand.market.post(2)
    stand.tick(2)
    assert len(stand.market.bids) == 1
    assert stand.stage(1) == (Stage.OUTBID, "new work is taken under later contracts")
    assert not stand.auction.considers, "it waits for nothing, so its node may be idle"
    stand.market.post(3)
    stand.market.change(3, bidder=ME, status=TaskStatus.TRAINING)
    stand.tick(1)
    assert stand.stage(3) == (Stage.TRAINING, "found on the chain")


def test_steps_of_tasks_under_other_contracts_count_for_the_clocks(stand: Stand) -> None:
    long = replace(stand.market.offer, step_operations=10**16)
    stand.elsewhere = {"task 3 of market 0x1": long}
    stand.market.post(1)
    stand.tick(2)
    assert stand.market.bids == []
    refused = stand.stage(1)
    assert refused is not None
    assert refused[1].startswith("games of this task: ")


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        (TaskStatus.BIDDING, Stage.BID),
        (TaskStatus.TRAINING, Stage.TRAINING),
        (TaskStatus.SUBMITTED, Stage.SUBMITTED),
        (TaskStatus.UNPAID, Stage.SUBMITTED),
    ],
)
def test_an_own_task_that_the_database_does_not_know_is_taken_up(
    stand: Stand, status: TaskStatus, stage: Stage
) -> None:
    """The task is taken up even while no new work is taken, and even if the operator chose other tasks."""
    stand.market.post(1)
    stand.market.change(1, bidder=ME, status=status)
    stand.context.settings.__dict__["tasks"] = (7,)
    stand.auction.tick(take=False)
    assert stand.stage(1) == (stage, "found on the chain")


def test_another_solvers_task_and_one_that_is_over_are_not_taken_up(stand: Stand) -> None:
    for task, bidder, status in ((1, RIVAL, TaskStatus.TRAINING), (2, ME, TaskStatus.SETTLED)):
        stand.market.post(task)
        stand.market.change(task, bidder=bidder, status=status)
    stand.tick(2)
    assert stand.stage(1) is None
    assert stand.stage(2) is None


def restart(stand: Stand) -> None:
    """Let a new process of the solver, with the same database and folders, do its first round."""
    stand.auction = Auction(stand.context, stand.failures)
    stand.tick()


def test_the_bundle_of_a_won_task_that_was_not_loaded_outlasts_a_restart(stand: Stand, bundle: str) -> None:
    stand.market.post(1)
    stand.tick(2)
    stand.market.change(1, status=TaskStatus.TRAINING)
    stand.database.put(1, Stage.TRAINING)
    restart(stand)
    assert stand.candidates == [bundle]


@pytest.mark.parametrize("status", [TaskStatus.BIDDING, TaskStatus.TRAINING])
def test_the_bundle_of_an_own_task_outlasts_the_loss_of_the_database(
    stand: Stand, tmp_path: Path, bundle: str, status: TaskStatus
) -> None:
    stand.market.post(1)
    stand.tick(2)
    assert stand.market.views[1].bidder == ME
    stand.market.change(1, status=status)
    stand.database.close()
    stand.database = Database(tmp_path / "empty.sqlite", tiny.IDENTITY)
    cast(Any, stand.context).database = stand.database
    restart(stand)
    assert stand.stage(1) is not None
    assert stand.candidates == [bundle]
