"""The events of a task that were told, and which of them a re-organisation of the chain has made void. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.chain.receipts import Event

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """An event with its line; empty for one that has none."""

    event: Event
    text: str = ""

    @property
    def key(self) -> Key:
        """Identifies it wherever its transaction is mined."""
        event = self.event
        return event.contract, event.name, event.log.transaction, repr(sorted(event.arguments.items()))


@dataclass(frozen=True, slots=True)
class Happened:
    """What was told so far, in the chain's order."""

    told: tuple[Told, ...] = ()

    def rewound(self, block: int, again: Sequence[Event]) -> tuple[Happened, list[Told]]:
        """Split after a block: events that still stand because they happened again (the same event by the same
        transaction, in `again`), and void ones.
        """
        repeated = {Told(event).key: event for event in again}
        kept, void = [], []
        for each in self.told:
            if each.event.log.block <= block:
                kept.append(each)
            elif each.key in repeated:
                kept.append(replace(each, event=repeated[each.key]))
            else:
                void.append(each)
        return Happened(tuple(kept)), void

    def new(self, events: Sequence[Event]) -> list[Event]:
        """Those that were not told yet."""
        known = {each.key for each in self.told}
        return [event for event in events if Told(event).key not in known]

    def of_game(self, name: str, game: int) -> list[Event]:
        """The events of a name in a game."""
        events = (each.event for each in self.told)
        return [event for event in events if event.name == name and event.arguments["game"] == game]

    @property
    def games(self) -> list[int]:
        """The games on the task, in the order of their opening."""
        return [int(each.event.arguments["game"]) for each in self.told if each.event.name == OPENING]

    def followed_by(self, more: Sequence[Told]) -> Happened:
        """With more that was told after it."""
        return Happened((*self.told, *more))


OPENING = "Challenged"
"""The event that opens a game on a task."""


def own(task: int, events: Sequence[Event], games: Sequence[int]) -> list[Event]:
    """The events of a task, and of its games: those that were opened before, and among the events."""
    known, found = set(games), []
    for event in events:
        if event.arguments.get("task") == task:
            if event.name == OPENING:
                known.add(int(event.arguments["game"]))
            found.append(event)
        elif "task" not in event.arguments and event.arguments.get("game") in known:
            found.append(event)
    return found
