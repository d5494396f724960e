"""What looks of open tasks have made public: revealed salts, and accusations (audit.md section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from protocol.chain.events import Follower
from protocol.chain.views import LookView
from protocol.commitments.opened_chunks import Place
from protocol.dispute.keys import accusation_word, revealed_word
from protocol.node.party.exits import Observation
from verifier.task_events import TaskEvents


@dataclass(frozen=True, slots=True)
class Revealed:
    """What the looked-at account has revealed: its salt, which is now public, and its root of the segment."""

    salt: bytes
    segment_root: bytes


@dataclass(frozen=True, slots=True)
class Accused:
    """An accusation to answer: a leaf at a place under the account's segment root."""

    place: Place
    leaf: bytes
    segment_root: bytes


@dataclass(slots=True)
class _Told:
    """The events of one task's looks, and the present state of the looks."""

    follower: Follower
    reveals: dict[int, Revealed] = field(default_factory=dict)
    accusations: dict[int, Accused] = field(default_factory=dict)
    stands: dict[int, LookView] = field(default_factory=dict)


class LookEvents(TaskEvents[_Told]):
    """The state and events of open tasks' looks. `see` is called by the loop's thread, the other methods by
    any thread.
    """

    def see(self, seen: Observation) -> None:
        """Record the present state, and events since the last call. Raises ChainError."""
        if not seen.looks or seen.audit is None:
            return
        task, calls = seen.view.task, self._client.looks
        stands = {look.number: calls.look(task, look.number) for look in seen.looks}
        told = self._known(task, seen.audit.drawn_at, _Told, calls)
        with self._lock:  # the present state is known even if events cannot be read
            told.stands = stands
        self._read(told)
        if any(self._lacks(task, look) for look in stands):
            told.follower = self._follower(task, seen.audit.drawn_at, calls)
            self._read(told)

    def _read(self, told: _Told) -> None:
        events = told.follower.poll().events
        with self._lock:
            for event in events:
                about = event.arguments
                if event.name == "Revealed":
                    told.reveals[about["look"]] = Revealed(about["salt"], about["segmentRoot"])
                elif event.name == "Accused":
                    place, leaf, root = about["accusation"]
                    told.accusations[about["look"]] = Accused(Place(*place), leaf, root)

    def _lacks(self, task: int, look: int) -> bool:
        """Whether the look's state shows a reveal or an accusation that no event has told."""
        stands = self.of(task, look)
        if stands is None:
            return False
        unrevealed = stands.revealed is not None and self.revealed(task, look) is None
        return unrevealed or (stands.accused is not None and self.accused(task, look) is None)

    def of(self, task: int, look: int) -> LookView | None:
        """The state of a look; None if it has not been read yet."""
        with self._lock:
            told = self._tasks.get(task)
            return None if told is None else told.stands.get(look)

    def revealed(self, task: int, look: int) -> Revealed | None:
        """What the looked-at account has revealed; None unless it matches the look's state."""
        with self._lock:
            told = self._tasks.get(task)
            if told is None or look not in told.reveals or look not in told.stands:
                return None
            found = told.reveals[look]
            word = revealed_word(found.salt, found.segment_root)
            return found if told.stands[look].revealed == word else None

    def accused(self, task: int, look: int) -> Accused | None:
        """The look's open accusation; None if there is none, or if it was answered."""
        with self._lock:
            told = self._tasks.get(task)
            if told is None or look not in told.accusations or look not in told.stands:
                return None
            found = told.accusations[look]
            word = accusation_word(found.place, found.leaf, found.segment_root)
            return found if told.stands[look].accused == word else None
