"""The data that is made public in looks, on a simulated chain. The data counts only while the contract's
state agrees with it.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.events import Batch
from protocol.chain.receipts import Event, Log
from protocol.chain.views import LookView
from protocol.commitments.opened_chunks import Place
from protocol.dispute.keys import accusation_word, revealed_word
from protocol.dispute.looks import Look
from tests.unit.verifier.test_seats import AUDIT, ME, OTHER, observation, seat
from verifier import task_events
from verifier.look_events import Accused, LookEvents, Revealed

LOOK = Look(1, 0).number
SALT, ROOT, LEAF = (bytes([value]) * 32 for value in (1, 2, 3))
PLACE = Place(2, 1, 0, 0)
NOTHING = LookView(None, None, until=0, lock=0, game=0, accusations=0, dropped=False)
REVEALED = replace(NOTHING, revealed=revealed_word(SALT, ROOT))
ACCUSED = replace(REVEALED, accused=accusation_word(PLACE, LEAF, ROOT))
SEEN = replace(observation(), audit=replace(AUDIT, looks=1), looks=[seat(LOOK, ME)])


class Chain:
    """The state of the task's only look, and the events that a follower finds."""

    def __init__(self) -> None:
        self.stands = NOTHING
        self.told: list[Event] = []
        calls = SimpleNamespace(address=OTHER, contract=None, look=lambda _task, _look: self.stands)
        deployment = SimpleNamespace(block=1)
        self.client = cast(Client, SimpleNamespace(connection=None, deployment=deployment, looks=calls))

    def tell(self, name: str, **arguments: Any) -> None:
        """Add an event for the next call to find."""
        self.told.append(Event("contract", name, {"look": LOOK, **arguments}, cast(Log, None)))

    def poll(self) -> Batch:
        told, self.told = self.told, []
        return Batch(tuple(told), "")


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    made = Chain()
    monkeypatch.setattr(task_events, "first_block", lambda *_about: 1)
    monkeypatch.setattr(task_events, "Follower", lambda *_arguments, **_named: made)
    return made


def test_what_is_told_counts_while_it_stands(chain: Chain) -> None:
    found = LookEvents(chain.client)
    assert found.of(1, LOOK) is None
    chain.tell("Revealed", salt=SALT, segmentRoot=ROOT)
    chain.tell("Accused", accusation=(PLACE, LEAF, ROOT))
    chain.stands = ACCUSED
    found.see(SEEN)
    assert found.of(1, LOOK) == ACCUSED
    assert found.revealed(1, LOOK) == Revealed(SALT, ROOT)
    assert found.accused(1, LOOK) == Accused(PLACE, LEAF, ROOT)
    chain.stands = REVEALED  # answered
    found.see(SEEN)
    assert found.accused(1, LOOK) is None
    assert found.revealed(1, LOOK) == Revealed(SALT, ROOT)
    chain.stands = NOTHING  # taken back by a re-organisation
    found.see(SEEN)
    assert found.revealed(1, LOOK) is None
    found.forget(1)
    assert found.of(1, LOOK) is None


def test_how_a_look_stands_is_known_where_no_event_can_be_read(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LookEvents(chain.client)
    chain.stands = REVEALED
    with monkeypatch.context() as patch:
        patch.setattr(chain, "poll", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            found.see(SEEN)
    assert found.of(1, LOOK) == REVEALED
    assert found.revealed(1, LOOK) is None
    chain.tell("Revealed", salt=SALT, segmentRoot=ROOT)
    found.see(SEEN)
    assert found.revealed(1, LOOK) == Revealed(SALT, ROOT)


def test_events_that_a_node_left_out_are_read_again(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a seat would not answer the accusation, and would lose its lock."""
    found, left_out = LookEvents(chain.client), [True]
    chain.tell("Revealed", salt=SALT, segmentRoot=ROOT)
    chain.tell("Accused", accusation=(PLACE, LEAF, ROOT))
    monkeypatch.setattr(task_events, "Follower", lambda *_arguments, **_named: Rereading(chain, left_out))
    chain.stands = ACCUSED
    found.see(SEEN)
    assert found.of(1, LOOK) == ACCUSED
    assert found.accused(1, LOOK) is None
    left_out.clear()
    found.see(SEEN)
    assert found.accused(1, LOOK) == Accused(PLACE, LEAF, ROOT)
    assert found.revealed(1, LOOK) == Revealed(SALT, ROOT)


class Rereading:
    """A follower that reads all events of the chain once. While `left_out` has a value, the node shows none of
    the events of the blocks that are read.
    """

    def __init__(self, chain: Chain, left_out: list[bool]) -> None:
        self._chain, self._left_out, self._seen = chain, left_out, 0

    def poll(self) -> Batch:
        events, self._seen = tuple(self._chain.told[self._seen :]), len(self._chain.told)
        return Batch(() if self._left_out else events, "")
