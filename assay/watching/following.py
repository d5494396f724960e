"""Follows one task on the chain, with few requests: its state, and each of its events once.

If there is no new block, a look requests only the chain's head. A new block also costs a request for its
events. The contracts are read again only after an event of the task, or a re-organisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from assay.known_task import KnownTask
from assay.status import report_of
from assay.task_status import TaskStatusReport
from assay.watching.happened import Happened, Told, own
from assay.watching.waiting import deadlines, waiting
from assay.watching.words import Words
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.events import Follower, first_block
from protocol.chain.receipts import Event
from protocol.chain.views import NOBODY, TaskView
from protocol.dispute.names import Names
from protocol.node.home import Home
from protocol.tasks.bundles import BundleError, load_bundle
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms


@dataclass(frozen=True)
class Standing:
    """The task's state in the block with time `read_at`. If a draw is pending, its round is published at
    `round_time`.
    """

    view: TaskView
    report: TaskStatusReport
    read_at: int
    round_time: int | None

    def waits(self, now: int) -> tuple[str, int | None]:
        """What the task waits for next, in words, and the seconds until then. `now` is the present second of
        the chain's time. The seconds are None if there is no deadline.
        """
        report = self.report
        found = deadlines(report, self.read_at, self.round_time)
        return waiting(found, report.status, report.awaited_round is not None, now)


@dataclass(frozen=True)
class Line:
    """An event of the task in words. `time` is the time of its block."""

    event: Event
    text: str
    time: int


@dataclass(frozen=True)
class News:
    """What a new block brought: lines that became void, and new lines. If the chain was re-organised,
    `rewound` is the last block that both branches share; otherwise it is None.
    """

    block: Block
    rewound: int | None
    void: Sequence[Told]
    lines: Sequence[Line]


class Following:
    """Follows a task from the time when it was posted. `known` is the task to follow; by default, it is the
    task that has the number `task` when this object is made. `standing` is the task's state as last read. It
    is None before the first look. The first look reads the state, and later looks read it again after events
    of the task or a re-organisation. Each such look compares the task with `known`.

    Raises ChainError. If there is no such task, the error is Reverted (UnknownTask).
    """

    def __init__(self, client: Client, home: Home, task: int, known: KnownTask | None = None) -> None:
        self.task = task
        self._client, self._home = client, home
        self.known = known or KnownTask.read(client, task)
        self.terms: Terms = self.known.terms
        self._words = Words(self)
        self._happened = Happened()
        self._pending: list[Event] = []
        """Events that no successful look has reported yet; the next look includes them."""
        self._rewound: int | None = None
        """The lowest block to which the chain was rewound since the last successful look; None without a
        re-organisation.
        """
        self._seen = ""
        self.standing: Standing | None = None

    def look(self) -> News | None:
        """What is new; None if the chain has no new block since the last look. Raises ChainError; the next
        look then reports what this one missed. After a re-organisation, raises AnotherTask or NotMinedAgain
        if the task does not have its number any more (`KnownTask.view`).
        """
        with self._client.connection.view() as block:
            if block.hash == self._seen:
                return None
            self._poll()
            told = before = self._happened
            rewound, void = self._rewound, list[Told]()
            events = own(self.task, self._pending, before.games)
            if rewound is not None:
                before, void = before.rewound(rewound, events)
                events = own(self.task, self._pending, before.games)
            new = before.new(events)
            # The words of an event may depend on other events of the same block.
            self._happened = before.followed_by([Told(event) for event in new])
            try:
                if self.standing is None or new or rewound is not None:
                    self.standing = self._read(block)
                lines = [line for event in new if (line := self._line(event, block)) is not None]
            except BaseException:
                self._happened = told
                raise
        texts = {id(line.event): line.text for line in lines}
        self._happened = before.followed_by([Told(event, texts.get(id(event), "")) for event in new])
        self._pending, self._rewound, self._seen = [], None, block.hash
        return News(block, rewound, [each for each in void if each.text], lines)

    @cached_property
    def _follower(self) -> Follower:
        """Follows all contracts but the vault from the block of the post. First used inside a view."""
        client = self._client
        posted = self.known.view(client, self._home).posted_at(self.terms.bidding_period)
        first = first_block(client.connection, client.deployment.block, posted)
        contracts = {
            address: bound for address, bound in client.contracts.items() if address != client.vault.address
        }
        return Follower(client.connection, contracts, first)

    def _poll(self) -> None:
        batch = self._follower.poll()
        if batch.rewound is not None:
            lowest = batch.rewound if self._rewound is None else min(batch.rewound, self._rewound)
            self._rewound = lowest
            self._pending = [event for event in self._pending if event.log.block <= batch.rewound]
        self._pending += batch.events

    def _line(self, event: Event, block: Block) -> Line | None:
        text = self._words.line(event)
        if text is None:
            return None
        number = event.log.block
        time = block.time if number == block.number else self._client.connection.block(number).time
        return Line(event, text, time)

    def _read(self, block: Block) -> Standing:
        """Read the task's state. Must be called inside a view. Raises AnotherTask, NotMinedAgain."""
        client = self._client
        view = self.known.view(client, self._home)
        games = {game: self.calls(game) for game in self._happened.games}
        report = report_of(client, self.task, games, block.time)
        awaited = report.awaited_round
        return Standing(
            view,
            report,
            block.time,
            None if awaited is None else client.deployment.beacon.time_of(awaited),
        )

    # ------------------------------------------------------------------ facts that the words need

    def who(self, address: str) -> str:
        """The account in words: the submitter, the solver, or a short form of the address."""
        view = None if self.standing is None else self.standing.view
        short = f"{address[:8]}…{address[-4:]}"
        if view is not None and address == view.submitter:
            return f"the submitter {short}"
        if view is not None and address == view.bidder != NOBODY:
            return f"solver {short}"
        return short

    def segments(self, task: int, seat: int) -> Sequence[int]:
        """The segments of the seat or look with the number `seat`."""
        return self._client.audit.segments(task, seat)

    def segments_per_seat(self, _task: int) -> int:
        """The number of segments per seat in the task's terms."""
        return self.terms.segments_per_verifier

    def names(self, _event: Event) -> Names | None:
        """Names from the task's program; None if the task's bundle is not in the home folder."""
        return self._names

    @cached_property
    def _names(self) -> Names | None:
        folder = self._home.bundles / self.terms.bundle_hash.hex()
        if not (folder / MANIFEST).is_file():
            return None
        try:
            return Names(load_bundle(folder).step.program)
        except BundleError:  # names only help people: without them, numbers are shown
            return None

    def calls(self, game: int) -> tuple[int, ...]:
        """The call instructions that a game descended into."""
        return tuple(int(event.arguments["n"]) for event in self._happened.of_game("CallSelected", game))

    def is_split(self, game: int) -> bool:
        """Whether a game descended to the blocks of a single sum."""
        return bool(self._happened.of_game("Split", game))
