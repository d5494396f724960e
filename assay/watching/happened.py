"""Keeps the reported events of a task, and finds those that a re-organisation of the chain has made void.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.chain.receipts import Event

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A reported event and its line; the line is empty for events without words."""

    event: Event
    text: str = ""

    @property
    def key(self) -> Key:
        """The key that identifies the event. It stays the same if the transaction is mined again in another block."""
        event = self.event
        return event.contract, event.name, event.log.transaction, repr(sorted(event.arguments.items()))


@dataclass(frozen=True, slots=True)
class Happened:
    """The events reported so far, in the chain's order."""

    told: tuple[Told, ...] = ()

    def rewound(self, block: int, again: Sequence[Event]) -> tuple[Happened, list[Told]]:
        """The events that still stand after a re-organisation of the chain, and those that it made void.
        `block` is a block that both branches share. An event after that block still stands if the same
        transaction emitted it again; `again` holds the events emitted since.
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
        """The events that have not been reported yet."""
        known = {each.key for each in self.told}
        return [event for event in events if Told(event).key not in known]

    def of_game(self, name: str, game: int) -> list[Event]:
        """The reported events of one game that have the name `name`."""
        events = (each.event for each in self.told)
        return [event for event in events if event.name == name and event.arguments["game"] == game]

    @property
    def games(self) -> list[int]:
        """The games on the task, in the order of their opening."""
        return [int(each.event.arguments["game"]) for each in self.told if each.event.name == OPENING]

    def followed_by(self, more: Sequence[Told]) -> Happened:
        """A copy of these events, followed by `more`."""
        return Happened((*self.told, *more))


OPENING = "Challenged"
"""The event that opens a game on a task."""


def own(task: int, events: Sequence[Event], games: Sequence[int]) -> list[Event]:
    """The `events` that belong to a task or to its games. Its games are the `games` opened before, and those
    that `events` open.
    """
    known, found = set(games), []
    for event in events:
        if event.arguments.get("task") == task:
            if event.name == OPENING:
                known.add(int(event.arguments["game"]))
            found.append(event)
        elif "task" not in event.arguments and event.arguments.get("game") in known:
            found.append(event)
    return found
