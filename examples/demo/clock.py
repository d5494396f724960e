"""The chain's clock. It advances by one second per block. When every story only waits for a deadline, the
clock is moved ahead.

So the demo ends correctly on any machine: in the chain's time, no deadline passes while a party still has
work to do before it. For example, the clock is moved to the end of a challenge period only when three things
have happened. Every false result is convicted, the seat that gave away its salt is reported (event
`Informed`), and the false accuser has no move left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from examples.demo.ledger import Ledger
from examples.demo.stage import SILENT, Stage
from examples.demo.stories import Story
from examples.demo.tasks import PERIODS
from protocol.chain.views import NOBODY, AuditView, TaskStatus, TaskView
from protocol.dispute.view import Phase

NO_MOVE = "ElementAgrees"
"""The name of the error that the contract raises when it is asked to judge a correct element. The accuser's
log shows the error under this name. After this error, the accuser has no move left.
"""
TOGETHER_SECONDS = 600
"""When the clock is moved past the next deadline, it is also moved past the deadlines that follow within this
many seconds, for example the ends of bidding for all tasks. The deadlines of a single task are further apart.
"""


class Clock:
    """Moves the clock to the deadlines that the stories wait for, and prints each move with `say`."""

    def __init__(self, stage: Stage, ledger: Ledger, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._ledger = ledger
        self._say = say

    def pass_idle_time(self, left: Sequence[Story]) -> None:
        """Move the clock past the next deadline, unless one of the stories `left` has work to do before it."""
        now, waits = self._stage.client.now(), []
        for story in left:
            deadline = self._waits_until(story)
            if deadline is None or deadline < now:  # a party has work to do, or a call is due now
                return
            waits.append(deadline)
        if waits:
            seconds = max(time for time in waits if time <= min(waits) + TOGETHER_SECONDS) + 1 - now
            self._say(
                f"nobody has anything left to do: the chain's clock is moved {seconds} s, to the next deadline"
            )
            self._stage.chain.skip(seconds)

    def _waits_until(self, story: Story) -> int | None:
        """The deadline before which nothing happens in a story, or None if a party has work to do."""
        task = self._stage.client.market.task(self._stage.tasks[story.letter])
        if task.status is TaskStatus.BIDDING:
            return None if task.bidder == NOBODY else task.bids_until
        if task.status is TaskStatus.TRAINING:
            return task.train_until if self._is_refused(story) else None
        if story.withheld:
            return self._withheld(story, task)
        if task.status is not TaskStatus.SUBMITTED or story.cheat is not None:
            return None
        return self._first([self._audited(story, task), self._accused(story, task)])

    def _is_refused(self, story: Story) -> bool:
        """Whether the story is one whose run must be refused, and the solver's process has already ended."""
        return story.refused and self._stage.children.exit_code(self._stage.process(story)) is not None

    def _audited(self, story: Story, task: TaskView) -> int | None:
        """The next deadline of an audit, or None if a party has work to do. The deadlines of seats that will
        not attest come first, then the end of the challenge period.
        """
        audit = self._stage.client.audit
        draws = audit.audit(task.task)
        if not draws.drawn_at or draws.pending:
            return None
        if story.outsourced and not self._ledger.events("Informed", task=task.task):
            return None
        if story.stamped:
            return self._looked_at(task, draws)
        late = [seat for seat in audit.seats(task.task) if not seat.attested]
        if not late:
            return task.challenge_until
        mute = {NOBODY, self._stage.address(SILENT)} if story.silent else {NOBODY}
        return self._first(seat.until if seat.account in mute else None for seat in late)

    def _looked_at(self, task: TaskView, draws: AuditView) -> int | None:
        """The next deadline in the rubber stamp's story, or None if a party has work to do. The deadline for
        answering the accusation comes first, then the end of the challenge period.
        """
        if self._ledger.events("Unanswered", task=task.task):
            return task.challenge_until
        for event in self._ledger.events("Accused", task=task.task) if draws.audited else ():
            return int(event.arguments["until"])
        return None

    def _withheld(self, story: Story, task: TaskView) -> int | None:
        """The next deadline in the story of withheld data, or None if a party has work to do. The deadlines
        come in this order: the time from which the refused seat claims, the time from which jurors without
        the item vote no, the time of the jury's verdict, and, once the task is unpaid, the end of its
        challenge period.
        """
        if task.status is TaskStatus.UNPAID:
            return task.challenge_until
        audit, period = self._stage.client.audit, PERIODS["attest_period"]
        draws = audit.audit(task.task)
        if (
            task.status is not TaskStatus.SUBMITTED
            or not draws.drawn_at
            or draws.pending
            or not draws.attested
        ):
            return None
        if not draws.claimant:
            return draws.until - period // 2
        jury = audit.jury(task.task)
        if jury is None:
            return None
        voted = (jury.yes | jury.no).bit_count() == story.terms["jurors"]
        return jury.until if voted else jury.until - period // 4

    def _accused(self, story: Story, task: TaskView) -> int | None:
        """The deadline after which the story goes on, or None if the accuser has work to do. If the accuser
        has no move left in an open game, it is the game's deadline. If the game is over, or the story has no
        accuser, it is the end of the challenge period.
        """
        if story.accuser is None:
            return task.challenge_until
        for event in self._ledger.events("Challenged", task=task.task):
            game = self._stage.client.game.game(event.arguments["game"])
            if game.phase is Phase.CLOSED:
                return task.challenge_until
            return game.deadline if self._stage.children.has_written(story.accuser, NO_MOVE) else None
        return None

    @staticmethod
    def _first(times: Iterable[int | None]) -> int | None:
        """The earliest of the times, or None if any of them is None."""
        found = list(times)
        return None if None in found else min(time for time in found if time is not None)
