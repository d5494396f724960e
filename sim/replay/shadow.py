"""A market of the engine with one row, played in parallel with the chain. This market makes the decisions.

Bids, work, seats, challenges and ends come from `sim.engine`. Only the draws differ: they come from the
chain, not from a random stream. Attestations, draws and the targets' reveals are carried out on the chain at
once. Challenges, accusations and the end of the task follow later. Amounts are booked in the engine's units.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from protocol.dispute.looks import Look, is_look
from sim.agents.verifiers import Check, Seats
from sim.engine.checking import Checker
from sim.engine.market import Market
from sim.engine.streams import Stream, streams
from sim.engine.task import Checks, Task
from sim.errors import StudyError
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.auctions import Assignment, Auction, descending, late
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.claims import NO_SEGMENT, fees_owed
from sim.mechanism.draw import NOBODY, Draw
from sim.replay.auditing import Auditing
from sim.replay.claiming import Claim
from sim.replay.looking import Looking
from sim.replay.scenario import Scenario

_TASKS: Final = {"arrival_rate": 1, "solver_capital": 0, "overlap": 1, "capital_rate": 0}
"""Values that a replay requires: each task is posted after the end of the previous one, and capital costs nothing."""
_ENDS: Final = ("unsold", "expired", "convicted", "void", "stalled", "settled")


class Challenge(NamedTuple):
    """A challenge as the engine sees it: an opened game, or a commitment that is never opened."""

    account: int
    seat: int | None
    """Number of the challenger's seat or look; None if it has neither."""
    segment: int | None
    """Segment that the challenge names, or None."""
    right: bool
    """Whether the challenger's replay has found the segment false."""
    wins: bool
    late: bool
    """Whether the challenge is opened after the task has stalled."""
    opens: bool = True
    preempts: bool = False
    """Whether an insider makes the challenge, just before the challenger that would have won."""


class _Seated(Checker):
    """A checker that takes its accounts from the chain's draws, and makes their attestations on the chain."""

    auditing: Auditing
    looking: Looking
    drawn: Draw

    def draw(self) -> Draw:
        """The chain's first draw. If it did not take place, all seats are empty."""
        return self.drawn

    def again(self, rows: Indices, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        """The accounts that the chain's redraw finds for the seats that `asked` marks."""
        del rows, bound, luck
        return self.auditing.redraw(asked)

    def act(self, seats: Seats, accounts: Indices, there: Flags, others: Flags) -> Check:
        """Let the accounts act as in the engine, and attest on the chain."""
        check = super().act(seats, accounts, there, others)
        if there.any():
            self.auditing.attest(accounts, check)
        return check

    def picks(self, candidates: Flags, left: Indices, luck: Stream) -> Flags:
        """The slots that the chain picks among the candidates. Targets that are willing to reveal do so at
        once.
        """
        del left, luck
        picked = np.zeros_like(candidates)
        if candidates.any():
            slots = self.looking.pick(candidates[:, 0].nonzero()[0].tolist())
            picked[slots] = True
            shows = self.reveals(np.array(self.looking.targets(slots), dtype=np.int64))
            self.looking.reveal([slot for slot, shown in zip(slots, shows) if shown])
        return picked

    def lookers(self, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        """For each slot that `asked` marks, the looker that the chain has drawn, or NOBODY. The result has
        shape (V q, 1).
        """
        del bound, luck
        found = np.full(asked.shape, NOBODY, dtype=np.int64)
        for slot, account in self.looking.lookers(asked[:, 0].nonzero()[0].tolist()).items():
            found[slot] = account
        return found

    def looks(self, seats: Seats, accounts: Indices, there: Flags) -> Check:
        """Let the lookers act as in the engine, and attest on the chain."""
        check = super().looks(seats, accounts, there)
        self.looking.attest(check)
        return check


class Shadow(Market):
    """A scenario's market, one task at a time: call `begin`, then `end` if the task was submitted."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises StudyError if a parameter needs something that a replay does not support."""
        for name, due in _TASKS.items():
            if getattr(scenario.parameters, name) != due:
                raise StudyError(
                    f"scenario {scenario.name!r}, {name}: expected {due}, for a replay plays every task, and each by "
                    f"itself, got {getattr(scenario.parameters, name)}; leave it out of a replay"
                )
        random = streams(np.random.SeedSequence(scenario.seed), rows=1)
        self._auction: Auction = late if scenario.late else descending
        self.asks: Amounts
        """Asks of the last auction in engine units, (solvers, 1). If the submitter bids, its ask is one more
        row, the last.
        """
        super().__init__(scenario.parameters, scenario.population, 1, scenario.tasks, random, self._record)
        self._seated = _Seated(self.parameters, self.population, random)
        self._last: Checks
        self.looking: Looking
        """The looks of the task that ended last."""
        self.checker = self._seated

    def end(self, task: Task, auditing: Auditing) -> Checks:
        """Let the drawn accounts act, and then book the end of the task in the engine. Return how the task
        was checked.
        """
        self._seated.auditing = auditing
        self._seated.looking = self.looking = Looking(auditing)
        self._seated.drawn = auditing.first() if task.drawn[0] else auditing.nobody()
        self._last = self._seated.check(task)
        self.closer.end(task, self._last)
        return self._last

    def ends(self) -> dict[str, int]:
        """For each way in which a task can end, the number of tasks so far that ended in this way."""
        return {name: int(getattr(self.books.tally, name)[0]) for name in _ENDS}

    def challenges(self) -> list[Challenge]:
        """All games and unopened commitments of the task that ended last, in the engine's order. However, a
        challenge that pre-empts the winner comes first.
        """
        checks, games = self._last, self._last.games
        holders = {account: number for number, account in self._places()}
        made: list[Challenge] = []
        for line, account in enumerate(games.accounts[:, 0].tolist()):
            named = int(checks.named[line, 0])
            each = Challenge(
                account,
                holders.get(account),
                None if named == NO_SEGMENT else named,
                bool(games.right[line, 0]),
                bool(checks.won[line, 0]),
                line >= checks.early,
            )
            made += [each] * int(games.opened[line, 0])
            made += [each._replace(opens=False, wins=False)] * int(games.unopened[line, 0])
        first = next((each for each in made if each.wins), None)
        if self.closer.preempted and first is not None:
            made.insert(0, first._replace(account=SUBMITTER, seat=None, preempts=True))
        return made

    def claims(self) -> list[Claim]:
        """The claims of all held seats and attested looks of the task that ended last. Meaningful only if
        its solver was convicted.
        """
        checks = self._last
        spoke = checks.spoke(self.checker.in_ledger)
        convicted = checks.named[checks.first, 0]
        fees = fees_owed(checks.paid, spoke, checks.segments, convicted)
        looked = {
            Look(number, slot).number
            for number, level in enumerate(checks.second.levels if checks.second else (), start=1)
            for slot in level.opened[:, 0].nonzero()[0].tolist()
        }
        return [
            Claim(number, account, number in looked, fee=False)
            if is_look(number)
            else Claim(number, account, bool(spoke[number, 0]), bool(fees[number, 0]))
            for number, account in self._places()
        ]

    def _places(self) -> list[tuple[int, int]]:
        """Held seats and attested looks: the number and the account of each."""
        checks = self._last
        found = list(enumerate(checks.accounts[:, 0].tolist()))
        for number, level in enumerate(checks.second.levels if checks.second else (), start=1):
            found += [
                (Look(number, slot).number, account)
                for slot, account in enumerate(level.lookers[:, 0].tolist())
            ]
        start = self.books.verifiers.start
        return [(number, start + account) for number, account in found if account != NOBODY]

    def _record(self, asks: Amounts, budget: Amounts) -> Assignment:
        self.asks = asks
        return self._auction(asks, budget)
