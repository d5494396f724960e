"""Describes events on the chain, each in one line of text.

The lines depend only on acts and names; the caller prints the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.watching.words import Words
from examples.demo.ledger import Act, Ledger
from protocol.chain.receipts import Event
from protocol.dispute.names import Names

UNTOLD = frozenset(("Posted", "DrawAsked", "Contested", "Moot", "BlockSelected", "Dropped"))
"""Events for which no line is printed."""
PRICED = frozenset(
    (
        "Revealed",
        "Accused",
        "Answered",
        "StepsPosted",
        "StepSelected",
        "TracePosted",
        "CallSelected",
        "Demanded",
        "NodeRevealed",
        "LeafRevealed",
        "ElementSelected",
        "Split",
        "Judged",
        "EdgeJudged",
        "Claimed",
        "Objected",
        "Opened",
    )
)
"""Events whose lines end with the amount of gas that their transaction used."""


@dataclass(frozen=True)
class Line:
    """An event of a task as text. `time` is the time of the event's block, in seconds since 1970."""

    time: int
    task: int
    text: str


class EventLines:
    """Turns acts into lines. `names` has the names in each task's program; `who` has the names of accounts by
    address.
    """

    def __init__(self, ledger: Ledger, names: Mapping[int, Names], who: Mapping[str, str]) -> None:
        self._ledger = ledger
        self._all_names = names
        self._who = {address.lower(): name for address, name in who.items()}
        self._words = Words(self)

    def lines(self, act: Act) -> Iterator[Line]:
        """The lines of an act: one for each event, but none for an event that belongs to no task, is in
        `UNTOLD`, or has no text in `Words`.
        """
        for event in act.events:
            task = self._task(event)
            text = None if task is None or event.name in UNTOLD else self._words.line(event)
            if task is not None and text is not None:
                yield Line(act.time, task, text + (_cost(act) if event.name in PRICED else ""))

    # ------------------------------------------------------------------ data for the lines

    def who(self, address: str) -> str:
        """The name of an account, or its address if it has none."""
        return self._who.get(address.lower(), address)

    def segments(self, task: int, seat: int) -> Sequence[int]:
        """The segments of one seat or look of a task; `seat` is the number of the seat or look."""
        return self._ledger.segments(task, seat)

    def segments_per_seat(self, task: int) -> int:
        """The number of segments per seat, q, in a task's terms."""
        return self._ledger.segments_per_seat(task)

    def names(self, event: Event) -> Names:
        """The names in the program of an event's task."""
        task = self._task(event)
        assert task is not None, "a game that goes somewhere has been opened"
        return self._all_names[task]

    def calls(self, game: int) -> tuple[int, ...]:
        """The call instructions through which a game descended, outermost first."""
        return self._ledger.calls(game)

    def is_split(self, game: int) -> bool:
        """Whether a game descended into the blocks of one sum."""
        return bool(self._ledger.events("Split", game=game))

    def _task(self, event: Event) -> int | None:
        if "task" in event.arguments:
            return int(event.arguments["task"])
        if "game" not in event.arguments:
            return None
        opened = self._ledger.events("Challenged", game=event.arguments["game"])
        return int(opened[0].arguments["task"]) if opened else None


def _cost(act: Act) -> str:
    return f" · {act.gas:,} gas"
