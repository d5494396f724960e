"""The juries of open tasks on a simulated chain: claims, votes, and who serves data."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.events import Batch
from protocol.chain.receipts import Event, Log
from protocol.chain.views import NOBODY, ItemClaim, JuryView, Seat, TaskStatus
from protocol.dispute.juries import UNAVAILABLE, JuryVerdict, Objection
from protocol.tasks.task import Terms
from tests.unit.verifier.test_seats import AUDIT, ME, MINE_TOO, NOW, OTHER, VIEW, observation, seat
from verifier import task_events
from verifier.jury import Jury
from verifier.jury_events import TRIES, JuryEvents

TERMS = cast(Terms, SimpleNamespace(jurors=3, move_time=20))
CLAIM = ItemClaim(ME, bond=5, seat=1, item=2, until=0, tensor=0, walk=0, opened=0)
VOTES = JuryView(1, pending=False, until=NOW + 100, yes=0, no=0)
CLAIMED = replace(AUDIT, claimant=2)
MOST = 18
"""Maximum number of claims by a seat of 14 segments."""


class Chain:
    """The contracts' state of one task, and the events that a follower finds."""

    def __init__(self) -> None:
        self.claim: ItemClaim | None = None
        self.jury: JuryView | None = None
        self.seats = {160: seat(160, OTHER), 161: seat(161, NOBODY), 162: seat(162, MINE_TOO)}
        self.asked: list[int] = []
        self.told: list[Event] = []
        self.block = 1
        """The block of the next events."""
        self.rewound: int | None = None
        """The block to which the chain is rewound before the next look."""
        contract = SimpleNamespace()
        self.client = cast(
            Client,
            SimpleNamespace(
                connection=None,
                deployment=SimpleNamespace(block=1),
                audit=SimpleNamespace(
                    address=ME, contract=contract, jury=lambda _task: self.jury, seat=self._seat
                ),
                juries=SimpleNamespace(address=OTHER, contract=contract, claim_of=lambda _task: self.claim),
                market=SimpleNamespace(
                    endpoint_of=lambda account: "nonsense" if account == ME else "http://127.0.0.1:9"
                ),
            ),
        )

    def _seat(self, _task: int, number: int) -> Seat:
        self.asked.append(number)
        return self.seats[number]

    def tell(self, name: str, **arguments: Any) -> None:
        """Add an event for the next look to find."""
        self.told.append(Event("contract", name, arguments, cast(Log, SimpleNamespace(block=self.block))))

    def poll(self) -> Batch:
        told, self.told = self.told, []
        rewound, self.rewound = self.rewound, None
        return Batch(tuple(told), "", rewound)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    made = Chain()
    monkeypatch.setattr(task_events, "first_block", lambda *_about: 1)
    monkeypatch.setattr(task_events, "Follower", lambda *_arguments, **_named: made)
    return made


def test_a_task_without_juries_is_not_asked_about(chain: Chain) -> None:
    found = JuryEvents(chain.client)
    assert not found.see(observation(), cast(Terms, SimpleNamespace(jurors=0)))
    assert not found.see(replace(observation(), audit=replace(AUDIT, drawn_at=0)), TERMS)
    assert found.of(1) is None
    assert found.sources(1) == []


def test_jurors_are_known_once_they_are_drawn_and_asked_for_once(chain: Chain) -> None:
    found, seen = JuryEvents(chain.client), replace(observation(), audit=CLAIMED)
    chain.claim, chain.jury = CLAIM, replace(VOTES, pending=True)
    found.see(seen, TERMS)
    assert found.of(1) == Jury(CLAIM, chain.jury)
    assert chain.asked == []
    chain.jury = VOTES
    for _ in range(2):
        found.see(seen, TERMS)
        assert found.of(1) == Jury(CLAIM, VOTES, [chain.seats[160], chain.seats[162]])
    assert chain.asked == [160, 161, 162]
    over = replace(seen, view=replace(VIEW, status=TaskStatus.SLASHED))
    chain.seats[162] = seat(162, MINE_TOO, released=True)
    found.see(over, TERMS)
    assert found.of(1) == Jury(CLAIM, VOTES, [chain.seats[160], chain.seats[162]])
    chain.claim = chain.jury = None
    found.see(observation(), TERMS)
    assert found.of(1) is None


def test_who_voted_yes_is_a_source_after_the_verdict_too(chain: Chain) -> None:
    found = JuryEvents(chain.client)
    chain.tell("Claimed", seat=1, account=ME, item=2)
    chain.tell("Attested", seat=0, account=ME, digest=bytes([1]) * 32)
    chain.tell("Attested", seat=160, account=OTHER, digest=bytes([1]) * 32)
    chain.tell("Attested", seat=161, account=MINE_TOO, digest=UNAVAILABLE)
    assert found.see(observation(), TERMS), "there is a source"
    assert [str(address) for address in found.sources(1)] == ["http://127.0.0.1:9"]
    assert found.has_claimed(1, seat(1, ME))
    assert not found.has_claimed(1, seat(1, OTHER)), "drawn again"
    assert not found.has_claimed(1, seat(0, ME))
    assert found.has_voted_yes(1, {OTHER})
    assert not found.has_voted_yes(1, {MINE_TOO}), "it said no"
    chain.tell("Attested", seat=162, account=OTHER, digest=bytes([2]) * 32)
    assert not found.see(observation(), TERMS), "the same one"
    chain.tell("Attested", seat=162, account=ME, digest=bytes([2]) * 32)
    assert found.see(observation(), TERMS)
    assert len(found.sources(1)) == 1, "an address that is none"
    found.forget(1)
    assert found.sources(1) == []


def judged(chain: Chain, verdict: JuryVerdict, seat: int = 1, item: int = 2, account: str = ME) -> None:
    """Add the events of a claim and its verdict."""
    chain.tell("Claimed", seat=seat, account=account, item=item)
    chain.tell("Judged", seat=seat, item=item, verdict=int(verdict), yes=0, no=0)


def test_an_undecided_jury_is_asked_again_a_few_times(chain: Chain) -> None:
    found, mine = JuryEvents(chain.client), seat(1, ME)
    for _ in range(TRIES):
        assert found.may_claim(1, mine, 2, MOST)
        judged(chain, JuryVerdict.UNDECIDED)
        assert found.see(observation(), TERMS), "after a verdict everybody is asked again"
    assert not found.see(observation(), TERMS)
    assert not found.may_claim(1, mine, 2, MOST)
    assert found.may_claim(1, seat(0, ME), 2, MOST), "another seat"
    assert found.may_claim(1, seat(1, OTHER), 2, MOST), "drawn again"


def test_one_item_after_the_other_is_claimed_as_often_as_the_seat_may(chain: Chain) -> None:
    """A solver may serve the item that a jury looks for and withhold the next one."""
    found, mine = JuryEvents(chain.client), seat(1, ME)
    for item in range(MOST):
        assert found.may_claim(1, mine, item, MOST)
        judged(chain, JuryVerdict.AVAILABLE, item=item)
        found.see(observation(), TERMS)
    assert not found.may_claim(1, mine, MOST, MOST)


def test_what_a_jury_has_is_not_claimed_again(chain: Chain) -> None:
    found, mine = JuryEvents(chain.client), seat(1, ME)
    judged(chain, JuryVerdict.AVAILABLE)
    judged(chain, JuryVerdict.AVAILABLE, seat=0, item=3, account=OTHER)
    found.see(observation(), TERMS)
    assert not found.may_claim(1, mine, 2, MOST)
    assert found.may_claim(1, mine, 3, MOST), "another item, that another seat has claimed"
    assert found.may_claim(1, seat(1, OTHER), 2, MOST), "the answer was not this account's"
    judged(chain, JuryVerdict.UNDECIDED, account=OTHER)
    found.see(observation(), TERMS)
    assert found.may_claim(1, seat(1, OTHER), 2, MOST), "the last verdict counts"


def test_a_claim_that_is_mined_again_counts_once(chain: Chain) -> None:
    found, mine = JuryEvents(chain.client), seat(1, ME)
    judged(chain, JuryVerdict.UNDECIDED)
    found.see(observation(), TERMS)
    chain.block = 2
    for _ in range(TRIES + 1):
        judged(chain, JuryVerdict.UNDECIDED)
        chain.rewound = 1
        found.see(observation(), TERMS)
    assert found.may_claim(1, mine, 2, MOST), "two claims"
    assert found.may_claim(1, mine, 2, 3)
    assert not found.may_claim(1, mine, 2, 2)


def test_what_a_re_organisation_took_back_does_not_count(chain: Chain) -> None:
    found, mine = JuryEvents(chain.client), seat(1, ME)
    judged(chain, JuryVerdict.UNDECIDED)
    found.see(observation(), TERMS)
    chain.block = 2
    judged(chain, JuryVerdict.AVAILABLE)
    chain.tell("Attested", seat=160, account=OTHER, digest=bytes([1]) * 32)
    found.see(observation(), TERMS)
    assert not found.may_claim(1, mine, 2, MOST)
    assert found.has_voted_yes(1, {OTHER})
    chain.rewound = 1
    found.see(observation(), TERMS)
    assert found.may_claim(1, mine, 2, 2)
    assert not found.has_voted_yes(1, {OTHER})


def test_who_voted_yes_owes_an_opening_once() -> None:
    jury = Jury(CLAIM, replace(VOTES, yes=0b101, no=0b010))
    one, two, three = (seat(number) for number in (160, 161, 162))
    assert jury.objection is None
    assert not jury.owes_opening(one)
    assert [jury.has_voted(juror) for juror in (one, two, three, seat(163))] == [True, True, True, False]
    objected = replace(jury, claim=replace(CLAIM, until=NOW, tensor=3, walk=7, opened=0b100))
    assert objected.objection == Objection(3, 7)
    assert [objected.owes_opening(juror) for juror in (one, two, three)] == [True, False, False]


def test_events_that_a_node_left_out_are_read_again(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a seat would claim an item once more, for another bond, and would not ask who serves it."""
    found, seen, left_out = JuryEvents(chain.client), replace(observation(), audit=CLAIMED), [True]
    chain.tell("Claimed", seat=1, account=ME, item=2)
    chain.tell("Attested", seat=160, account=OTHER, digest=bytes([1]) * 32)
    monkeypatch.setattr(task_events, "Follower", lambda *_arguments, **_named: Rereading(chain, left_out))
    chain.claim, chain.jury = CLAIM, replace(VOTES, yes=1)
    assert not found.see(seen, TERMS)
    assert found.sources(1) == []
    left_out.clear()
    assert found.see(seen, TERMS)
    assert [str(source) for source in found.sources(1)] == ["http://127.0.0.1:9"]
    assert found.has_claimed(1, seat(1, ME))
    assert not found.see(seen, TERMS)


class Rereading:
    """A follower that reads all events of the chain once. While `left_out` has a value, the node shows none of
    the events of the blocks that are read.
    """

    def __init__(self, chain: Chain, left_out: list[bool]) -> None:
        self._chain, self._left_out, self._seen = chain, left_out, 0

    def poll(self) -> Batch:
        events, self._seen = tuple(self._chain.told[self._seen :]), len(self._chain.told)
        return Batch(() if self._left_out else events, "")
