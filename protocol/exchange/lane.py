"""Runs the rounds of one lane. In each round, the lane waits for the others' messages, absorbs them, trains,
emits its own message and announces it. After the last round it absorbs once more and announces the result,
which all lanes must share.

A lane that was stopped resumes after its last announced round.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import Tensor

from protocol.commitments.atomic import write_atomically
from protocol.errors import InternalError
from protocol.exchange.announcements import Announcement
from protocol.exchange.errors import Divergence, JobError
from protocol.exchange.jobs import LaneJob, first_of, read_file
from protocol.exchange.members import MOST_BYTES, Members
from protocol.exchange.messages import tensor_of
from protocol.exchange.peers import Peers
from protocol.exchange.shelf import Shelf
from protocol.lanes import Part
from protocol.lanes.splitting import Inbox
from protocol.node import logs
from protocol.node.reach import Reach
from protocol.node.stopping import Stop
from protocol.program.execute import Interpreter
from protocol.program.step import State

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

_log = logs.get("lane")

TABLE: Final = "table.json"
"""The file that records which lanes counted in past rounds. A changed members file must not contradict it."""
AGAIN: Final = "train the job again, with another `run` in the file of members of all lanes"
STOP_SECONDS: Final = 0.2
"""Seconds between two checks of whether a waiting lane should stop."""

_PAST: Final = TypeAdapter(list[list[str]], config=ConfigDict(strict=True))

Found = TypeVar("Found")


class Stopped(InternalError):
    """The lane was asked to stop while it waited."""


@dataclass
class Lane:
    """Lane `number` of a job, with its own shelf. `run` may be called again, even in another process."""

    job: LaneJob
    members: Members
    number: int
    account: LocalAccount
    shelf: Shelf
    stop: Stop
    reach: Reach = field(default_factory=Reach)
    """Which addresses of other lanes this machine may connect to."""
    keep_rounds: int | None = None
    """The number of rounds for which messages are kept for other lanes; None keeps all messages."""
    _forgotten: int = field(default=0, init=False)
    """This object has already removed the messages of all rounds before this one (`_forget`)."""

    def __post_init__(self) -> None:
        """Raise `JobError` for an unknown lane, a wrong account, or a members file that changes past rounds."""
        width = self.job.lanes.width
        if not 0 <= self.number < width:
            raise JobError("lane", expected=f"a number from 0 to {width - 1}", got=str(self.number))
        expected = self.members.accounts[self.number]
        if self.account.address != expected:
            raise JobError(
                f"account of lane {self.number}",
                expected=expected,
                got=str(self.account.address),
                remedy="run it with the account that the file of members names, or correct that file",
            )
        self._require_same_past()

    def run(self) -> dict[str, Tensor] | None:
        """Train the remaining rounds and return the job's result, a state of the captured step.

        Returns None if the lane was asked to stop or was away in the last round. Raises `MessageError` if a
        lane has announced something that the job's programs cannot have made. In particular, raises
        `Divergence` if a lane has announced shared parameters or a result that differ from this lane's, and
        `Equivocation` if a lane has announced two states of one round.
        """
        interpreter = self.job.interpreter()
        peers = Peers(self.job, self.members, self.number, self.shelf, self.reach)
        try:
            state: State | None
            state, begin = self._kept()
            if state is not None and self._is_joined(begin):
                # When this state was kept, the table may not have said yet that a lane joins with it.
                step = self.job.lanes.inner
                self.shelf.put_state(step, state, range(len(step.state)))
            for number in range(begin, self.job.rounds):
                if self.stop.asked:
                    return None
                state = self._round(number, state, peers, interpreter)
            if state is None:
                return None
            inbox = self._inbox(self.job.rounds, peers)
            absorbed = self.job.lanes.absorbed(state, inbox, interpreter)
            self._confirm(absorbed, peers)
            return {name: absorbed[name].clone() for name in self.job.lanes.captured.step_program.state}
        except Stopped:
            return None

    def _round(
        self, number: int, state: State | None, peers: Peers, interpreter: Interpreter
    ) -> State | None:
        """The state after a round; None if the lane is away."""
        part = self.members.table.rows[number][self.number]
        if part is Part.AWAY:
            return None
        if state is None:
            state = self._joined(number, peers) if number else self._initial()
        began = time.monotonic()
        inbox = self._inbox(number, peers)
        computing = time.monotonic()
        trained = self.job.lanes.train(state, inbox, interpreter)
        self._keep(number, trained)
        _log.info(
            "trained",
            round=number,
            of=self.job.rounds,
            part=part.value,
            waited=round(computing - began, 3),
            computed=round(time.monotonic() - computing, 3),
        )
        return trained

    def _inbox(self, number: int, peers: Peers) -> Inbox:
        """The messages that this round absorbs: those of all lanes that counted in the round before."""
        nothing = tuple(x.to(self.job.device) for x in self.job.lanes.nothing())
        if number == 0:
            return [nothing] * self.job.lanes.width
        counting = self._counting(number - 1)
        _log.debug("waits for messages", round=number, lanes=counting)
        found = self._agreed(number - 1, peers, peers.messages(number - 1, counting, self._require_shared))
        # The state that a lane joins with is compared before it trains; and again a round later, when every lane
        # that counts has absorbed that member's message, so it has the member's announcement.
        joined = [self._joined_from(later) for later in (number, number - 1)]
        if any(joined):
            self._wait(peers.compare(filter(None, joined)))
        return [found.get(lane, nothing) for lane in range(self.job.lanes.width)]

    def _confirm(self, absorbed: State, peers: Peers) -> None:
        """Announce the result. Then wait until all lanes that count in the last row of the membership table
        have announced the same result.
        """
        number, counting = self.job.rounds, self._counting(self.job.rounds)
        roots = self.job.lanes.inner.tensor_roots(absorbed)
        self._write_table(number)
        self._announce(number, roots)
        _log.info("waits for results", lanes=counting)
        self._agreed(number, peers, peers.results(number, counting, self._require_shared))

    def _counting(self, number: int) -> list[int]:
        row = self.members.table.rows[number]
        return [lane for lane, part in enumerate(row) if part is Part.COUNTS]

    def _agreed(self, number: int, peers: Peers, question: Awaitable[Found]) -> Found:
        """Wait for the answer to a question about a round. If the question raises `Divergence`, look for
        another lane that has signed two states of this round or of the round before. If there is one, raise
        that lane's `Equivocation` instead.
        """
        try:
            return self._wait(question)
        except Divergence:
            others = [lane for lane in range(self.job.lanes.width) if lane != self.number]
            kept = [self.shelf.announced(one, lane) for one in (number - 1, number) for lane in others]
            self._wait(peers.compare(filter(None, kept)))
            raise

    def _require_shared(self, announcement: Announcement) -> None:
        """Raise `Divergence` if another lane announced shared parameters that differ from this lane's.
        Normally, this lane's parameters are those that it announced in the same round. If this lane joins in
        the next round, its parameters are instead those of the announced state from which it joins.
        """
        number = announcement.number
        own = self._joined_from(number + 1) or self.shelf.announced(number, self.number)
        if own is None:
            return
        names = self.job.lanes.inner.state
        differ = [
            name
            for name, mine, other in zip(names, own.roots, announcement.roots, strict=True)
            if name in self.job.lanes.parameters and mine != other
        ]
        if differ:
            raise Divergence(
                f"announcement of lane {announcement.lane} in round {number}",
                expected=f"the parameters that all lanes share, as lane {own.lane} has announced them",
                got=f"others, in {differ[0]}",
                remedy="one of the two lanes has absorbed something else, or a lane has signed two messages",
            )

    def _joined_from(self, number: int) -> Announcement | None:
        """The announcement of the state with which this lane joins in a round. None if it does not join in
        that round, or has not fetched the announcement yet.
        """
        table = self.members.table
        if not 0 < number < self.job.rounds or not table.joins(number, self.number):
            return None
        return self.shelf.announced(number - 1, table.member(number - 1))

    def _joined(self, number: int, peers: Peers) -> dict[str, Tensor]:
        """The state from which this lane trains in round `number`, after rounds that it missed. It is made
        from the state of a member, which is the lane with the lowest number among those that trained in the
        previous round. The member's announcement is kept, so that the message absorbed from the member
        belongs to the same state.
        """
        member = self.members.table.member(number - 1)
        _log.info("joins", round=number, member=member)
        found = self._wait(peers.state(number - 1, member, self.job.lanes.taken_over))
        return self._here(self.job.lanes.joined(found, self.job.seeds[self.number], self.number))

    def _initial(self) -> dict[str, Tensor]:
        return self._here(self.job.lanes.initial_state(self.job.seeds[self.number], self.number))

    def _here(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: x.to(self.job.device) for name, x in state.items()}

    # the shelf keeps them

    def _keep(self, number: int, state: State) -> None:
        """Put a state on the shelf and announce it. After that, the round is not trained again, unless the
        shelf has lost the announcement or tensors of the state.
        """
        step = self.job.lanes.inner
        count = len(step.state)
        own = 0 if self._is_joined(number + 1) else count - len(self.job.lanes.message_types)
        roots = self.shelf.put_state(step, state, range(own, count))
        self._write_table(number)
        self._announce(number, roots)
        self._forget(number)

    def _announce(self, number: int, roots: Sequence[bytes]) -> None:
        run = self.members.run
        self.shelf.announce(Announcement.signed(self.account, self.job.id, run, number, self.number, roots))

    def _forget(self, number: int) -> None:
        """Remove from the shelf what is no longer needed: the tensors of the previous state that are not in
        its message, and all messages that are `keep_rounds` rounds old or older.

        If another lane joins with the previous state, that state stays whole. The shelf may hold messages of
        many old rounds if this lane was away, or was started again with a smaller `keep_rounds`. So the first
        call looks for old messages in all rounds. A later call looks only in the rounds since the call before.
        """
        gone = number - 1
        announced = self.shelf.announced(gone, self.number) if gone >= 0 else None
        last = self.shelf.announced(number, self.number)
        assert last is not None, "it has just been announced"
        if announced is not None and not self._is_joined(number):
            kept = {root for later in (gone, number) for root in self._messages(later)}
            self.shelf.remove({*announced.roots} - {*last.roots} - kept)
        if self.keep_rounds is not None and number >= self.keep_rounds:
            first = number - self.keep_rounds + 1
            old = {root for one in range(self._forgotten, first) for root in self._messages(one)}
            later = {root for one in range(first, number + 1) for root in self._messages(one)}
            self.shelf.remove(old - later - {*last.roots})
            self._forgotten = first

    def _messages(self, number: int) -> Sequence[bytes]:
        """The roots of all tensors in a round's messages. They are read from the announcements on the shelf,
        so a lane whose announcement is not there is left out.
        """
        count = len(self.job.lanes.message_types)
        found = (self.shelf.announced(number, lane) for lane in range(self.job.lanes.width))
        return [root for announced in found if announced is not None for root in announced.roots[-count:]]

    def _is_joined(self, number: int) -> bool:
        """Whether another lane joins in this round from this lane's state of the round before."""
        table = self.members.table
        if not 0 < number < len(table.rows):
            return False
        joining = any(table.joins(number, lane) for lane in range(table.width))
        return joining and table.member(number - 1) == self.number

    def _kept(self) -> tuple[dict[str, Tensor] | None, int]:
        """The state to resume from, and the number of the round to train next.

        The rounds that this lane has announced, except the result, are searched from the latest back. The
        search ends in two cases. If the table says that the lane was away in a round, None is returned, with
        the number of the next round; the lane joins again in that next round or a later one. If all tensors
        of a round are on the shelf, the state after the round is returned, with the number of the next round.
        If neither happens in any round, None and 0 are returned.
        """
        step = self.job.lanes.inner
        for number in reversed(self.shelf.rounds()):
            announced = self.shelf.announced(number, self.number)
            if announced is None or number == self.job.rounds:  # the result is made again
                continue
            if self.members.table.rows[number][self.number] is Part.AWAY:
                return None, number + 1
            data = [self.shelf.tensor(root) for root in announced.roots]
            if any(one is None for one in data):
                continue
            tensors = {
                name: tensor_of(one or b"", type_, root, name)
                for name, type_, one, root in zip(
                    step.state, step.state_types, data, announced.roots, strict=True
                )
            }
            _log.info("goes on", after=number)
            return self._here(tensors), number + 1
        return None, 0

    # the past

    def _require_same_past(self) -> None:
        path = self.shelf.folder / TABLE
        if not path.exists():
            return
        width, remedy = self.job.lanes.width, f"restore it, or {AGAIN}"
        try:
            past = _PAST.validate_json(read_file(path, MOST_BYTES, "the rounds that are trained"))
        except ValidationError as error:
            raise JobError(
                str(path), expected="who counted in past rounds", got=first_of(error), remedy=remedy
            ) from error
        if len(past) > self.job.rounds:
            expected = f"at most {self.job.rounds} rounds"
            raise JobError(str(path), expected=expected, got=str(len(past)), remedy=remedy)
        wrong = [len(row) for row in past if len(row) != width]
        if wrong:
            raise JobError(
                str(path), expected=f"{width} lanes in each round", got=str(wrong[0]), remedy=remedy
            )
        now = [[part.value for part in row] for row in self.members.table.rows[: len(past)]]
        if past != now:
            number = next(k for k, (a, b) in enumerate(zip(past, now, strict=False)) if a != b)
            raise JobError(
                "file of members",
                expected=f"in round {number}, which is trained, {', '.join(past[number])}",
                got=", ".join(now[number]),
                remedy=f"change rounds to come alone, or {AGAIN}",
            )

    def _write_table(self, number: int) -> None:
        """Record which lanes counted in the rounds before round `number`. The messages of those rounds have
        been absorbed.
        """
        rows = [[part.value for part in row] for row in self.members.table.rows[:number]]
        write_atomically(self.shelf.folder / TABLE, json.dumps(rows).encode())

    def _wait(self, question: Awaitable[Found]) -> Found:
        """Wait for an answer. Raises `Stopped` if the lane is asked to stop first."""
        return asyncio.run(self._unless_stopped(question))

    async def _unless_stopped(self, question: Awaitable[Found]) -> Found:
        task = asyncio.ensure_future(question)
        while not task.done():
            if self.stop.asked:
                task.cancel()
                raise Stopped
            await asyncio.wait([task], timeout=STOP_SECONDS)
        return task.result()


def shelf_folder(home: Path, job: LaneJob, run: int, number: int) -> Path:
    """The folder of a lane's shelf in one run of a job, below the home folder `home`."""
    return home / "lanes" / job.id.hex()[:16] / str(run) / str(number)
