"""The parties that check a submitted task: the accounts drawn for its seats, the accounts drawn in place of
silent ones, the lookers, and the bystanders.
"""

from __future__ import annotations

import numpy as np

from protocol.tasks.task import ESCROW_DRAWS
from sim.agents.bystanders import Passing
from sim.agents.population import Population, spread
from sim.agents.verifiers import Check, Seats
from sim.engine.flight import Seated
from sim.engine.looking import Board, SecondLooks, look
from sim.engine.streams import Stream, Streams
from sim.engine.task import Checks, Games, Looks, Silence, Sitting, Task
from sim.mechanism.arrays import Flags, Floats, Indices
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.mechanism.claims import NO_SEGMENT
from sim.mechanism.draw import NOBODY, Draw, Pool, Segments, distinct
from sim.parameters import MarketParameters


class Checker:
    """Draws seats in all rows and lets their holders act according to their strategies."""

    def __init__(self, parameters: MarketParameters, population: Population, random: Streams) -> None:
        self.parameters = parameters
        self.population = population
        self.random = random
        self.pool = Pool(population.slots)
        self.seated = Seated(parameters.overlap)
        self._kinds = spread(population.verifiers, range(len(population.verifiers))).astype(np.int8)
        shown = [group.strategy.reveals for group in population.verifiers]
        self._reveals = spread(population.verifiers, shown).astype(np.bool_)
        accusing = [group.strategy.accuses for group in population.verifiers]
        self._accuses = spread(population.verifiers, accusing).astype(np.bool_)
        # Copiers act last, when there is something to copy.
        self._order = sorted(
            enumerate(population.verifiers), key=lambda numbered: numbered[1].strategy.watches
        )
        self._first_verifier = FIRST_SOLVER + population.solver_count
        self._first_bystander = self._first_verifier + population.verifier_count
        self._round = 0

    def check(self, task: Task) -> Checks:
        """Play all checks of a task. Every row draws random numbers, even if it does not use them, so that
        the streams of variants stay aligned.
        """
        self._round += 1
        checking = _Checking(self, task, self.draw())
        for _ in range(self.parameters.redraws):
            rows = checking.due()
            if not rows.size:
                break
            checking.redraw(rows)
        if self.parameters.look_chance:
            checking.look()
        checks = checking.ended()
        self.seated.add(checks.drawn)
        return checks

    def draw(self) -> Draw:
        """In each row, draw V seats among the accounts that no task in flight has drawn."""
        parameters, random = self.parameters, self.random
        uniform = random.draws.uniform(parameters.verifiers)
        segments = distinct(
            random.draws.uniform(parameters.segments_per_verifier, parameters.verifiers), parameters.segments
        )
        return Draw(self.pool.seats(uniform, self.seated.accounts(uniform.shape[1])), segments)

    def again(self, rows: Indices, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        """Draw accounts for some seats in the given rows. `asked`, (V, n), marks these seats. Accounts in
        `bound`, (m, n), are excluded, and so are those that tasks in flight have drawn.
        """
        uniform = luck.uniform(len(asked))
        bound = np.concatenate([bound, self.seated.accounts(uniform.shape[1])[:, rows]])
        uniform = uniform[:, rows]
        found = np.full(asked.shape, NOBODY, dtype=np.int64)
        for seat, wanted in enumerate(asked):
            at = wanted.nonzero()[0]
            taken = np.concatenate([bound, found])[:, at]
            found[seat, at] = self.pool.seats(uniform[seat : seat + 1, at], taken)[0]
        return found

    def luck(self) -> Stream:
        """Random numbers for this round's redraws."""
        return self.random.redraws.of(self._round)

    def online(self, uniform: Floats) -> Flags:
        """Which accounts are online, from a uniform number in [0, 1) for each."""
        return np.asarray(uniform >= self.parameters.downtime)

    def act(self, seats: Seats, accounts: Indices, there: Flags, others: Flags) -> Check:
        """The actions of accounts in their seats. `there`, (V, n): whether the account is online. `others`,
        (n,): whether somebody has already attested the task.
        """
        check = Check.nothing(accounts.shape)
        kinds = self._kinds.take(accounts, mode="wrap")
        for number, group in self._order:
            if group.strategy.watches:
                seen = others | check.attests.any(axis=0)
                seats = seats._replace(others=np.broadcast_to(seen, accounts.shape))
            acts = group.strategy.check(seats)
            check = check | acts.where((kinds == number) & there)
        return check

    def picks(self, candidates: Flags, left: Indices, luck: Stream) -> Flags:
        """The slots picked for a level of looks, (V q, rows). Each candidate is picked with the terms'
        chance, until the number of slots picked in its row reaches `left`, (rows,).
        """
        picked: Flags = candidates & (luck.uniform(len(candidates)) < self.parameters.look_chance)
        picked &= picked.cumsum(axis=0) <= left
        return picked

    def lookers(self, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        """Draw accounts for looks, as `again` does for seats. `asked`, (V q, rows), marks the looks' slots."""
        return self.again(np.arange(asked.shape[1]), asked, bound, luck)

    def looks(self, seats: Seats, accounts: Indices, there: Flags) -> Check:
        """What each looker does, (V q, rows), according to the `look` method of its strategy. All seats have
        attested by then, and a looker that watches others knows this.
        """
        check = Check.nothing(accounts.shape)
        kinds = self._kinds.take(accounts, mode="wrap")
        for number, group in self._order:
            check = check | group.strategy.look(seats).where((kinds == number) & there)
        return check

    def reveals(self, accounts: Indices) -> Flags:
        """Whether each account reveals its secret when it is looked at; arbitrary for NOBODY."""
        return np.asarray(self._reveals.take(accounts, mode="wrap"))

    def accuses(self, accounts: Indices) -> Flags:
        """Whether each account, as a looker, also accuses targets that have replayed and can answer;
        arbitrary for NOBODY.
        """
        return np.asarray(self._accuses.take(accounts, mode="wrap"))

    def look_luck(self) -> Stream:
        """Random numbers for this round's looks."""
        return self.random.looks.of(self._round)

    def in_ledger(self, accounts: Indices) -> Indices:
        """Ledger numbers of verifiers. The number of NOBODY is arbitrary; nothing is booked for it."""
        return np.asarray(self._first_verifier + np.maximum(accounts, 0))

    def bystanders(self, members: slice) -> Indices:
        """Ledger numbers of bystanders, (members, 1)."""
        return self._first_bystander + np.arange(members.start, members.stop)[:, None]


class _Checking:
    """One round's checks, draw by draw."""

    def __init__(self, checker: Checker, task: Task, drawn: Draw) -> None:
        self._checker = checker
        self._task = task
        parameters, random = checker.parameters, checker.random
        shape = drawn.accounts.shape
        self._segments = drawn.segments
        self._least: Segments = drawn.segments.min(axis=0)
        self._hit: Flags = self._least <= task.work.false
        self._silence = random.silence.uniform() if parameters.silence_rate else None
        self._luck: Stream | None = None
        self._accounts = np.where(task.live & task.drawn, drawn.accounts, NOBODY)
        self._attested: Flags = np.zeros(shape, dtype=np.bool_)
        self._seen = self._accounts.copy()
        """All accounts drawn so far, by row."""
        self._sittings: list[Sitting] = []
        self._silences: list[Silence] = []
        self._escrow_draws = np.ones(shape[1], dtype=np.int64)
        self._games: list[Games] = []
        self._second: SecondLooks | None = None
        outages = random.outages.uniform(shape[0]) if parameters.downtime else np.ones(shape)
        every = np.arange(shape[1])
        # A copy: the sitting must keep these accounts, which pay for their actions even if replaced later.
        self._sit(every, self._accounts.copy(), random.checks.uniform(shape[0]), outages)
        self._looks = self._pass_by()
        if task.own_games is not None:
            own = (task.own_games * task.live)[None]
            nothing = np.zeros(own.shape, dtype=np.bool_)
            self._games.append(Games.of(np.full_like(own, SUBMITTER), own, nothing, self._any(own.shape)))

    def due(self) -> Indices:
        """Rows whose seats are redrawn: some seat is not attested, nobody has won a game, and either a silent
        account or the escrow can pay for the draw.
        """
        waiting = self._waiting()
        silent = ((self._accounts != NOBODY) & ~self._attested).any(axis=0)
        due: Indices = (waiting & (silent | (self._escrow_draws < ESCROW_DRAWS))).nonzero()[0]
        return due

    def redraw(self, rows: Indices) -> None:
        """Redraw all unattested seats at once, as AuditBoard.redraw and draw do."""
        if self._luck is None:
            self._luck = self._checker.luck()
        asked = ~self._attested[:, rows]
        accounts = self._accounts[:, rows]
        silent = asked & (accounts != NOBODY)
        self._silences.append(Silence(rows, accounts, silent))
        self._escrow_draws[rows] += ~silent.any(axis=0)
        found = self._checker.again(rows, asked, self._seen[:, rows], self._luck)
        self._accounts[:, rows] = np.where(asked, found, accounts)
        seats = len(found)
        coins = self._luck.uniform(seats)[:, rows]
        self._sit(rows, found, coins, self._luck.uniform(seats)[:, rows])
        seen = np.full((seats, self._seen.shape[1]), NOBODY, dtype=np.int64)
        seen[:, rows] = found
        self._seen = np.concatenate([self._seen, seen])

    def look(self) -> None:
        """Play second looks at the tasks whose seats are all attested. Lookers' games are added after all
        games made so far.
        """
        checker, task = self._checker, self._task
        full: Flags = np.logical_and.reduce(self._attested, axis=0)
        replayed = np.zeros_like(self._attested)
        for rows, _, check in self._sittings:
            replayed[:, rows] |= check.attests & check.replays
        asked = task.live & task.drawn & full
        board = Board(asked, asked & ~self._convicted(), self._accounts, replayed, self._segments, self._seen)
        self._second = look(checker, task, board, checker.look_luck())
        self._seen = np.concatenate([self._seen, self._second.accounts])
        for level in self._second.levels:
            if level.opened.any():
                accounts, opened = checker.in_ledger(level.lookers), level.opened.astype(np.int64)
                self._games.append(Games.of(accounts, opened, level.right, level.segments))

    def ended(self) -> Checks:
        """How the tasks were checked. Call this only after the last draw."""
        task, waiting = self._task, self._waiting()
        undrawable = (self._escrow_draws >= ESCROW_DRAWS) & (self._accounts == NOBODY).any(axis=0)
        stalled = waiting & ~undrawable
        if not task.drawn.all():
            stalled |= task.live & ~task.drawn & ~self._convicted()
        early = sum(len(games.opened) for games in self._games)
        self._retrain(stalled)
        games = Games.joined(self._games)
        return Checks(
            self._accounts,
            self._seen,
            self._attested,
            self._segments,
            self._sittings,
            self._silences,
            games,
            self._named(games),
            self._won(games),
            early,
            self._looks,
            self._escrow_draws,
            stalled,
            self._second,
        )

    # ------------------------------------------------------------------ decisions

    def _waiting(self) -> Flags:
        """Drawn tasks with unattested seats and without a conviction."""
        waiting: Flags = self._task.live & self._task.drawn & ~self._attested.all(axis=0)
        return waiting & ~self._convicted() if waiting.any() else waiting

    def _convicted(self) -> Flags:
        convicted: Flags = np.logical_or.reduce(self._won(Games.joined(self._games)), axis=0)
        return convicted

    def _won(self, games: Games) -> Flags:
        """Games that the challenger wins, because it has found a false segment, or because the solver serves
        nothing or is silent.

        The more games a row has, the likelier the solver is silent. A silent solver loses all games of the
        row.
        """
        lost: Flags = ~self._task.work.serves | self._silent(games)
        won: Flags = (games.opened > 0) & (games.right | lost)
        return won

    def _silent(self, games: Games) -> Flags:
        """Rows in which the solver misses a move in some game, (rows,). The chance of a miss is the same in
        every game.
        """
        opened = games.opened.sum(axis=0)
        if self._silence is None:
            return np.zeros(opened.shape, dtype=np.bool_)
        return np.asarray(self._silence < 1 - (1 - self._checker.parameters.silence_rate) ** opened)

    def _named(self, games: Games) -> Segments:
        """The segment that each game names, (n, rows), or NO_SEGMENT if it names none.

        If the solver serves nothing, no game names a segment. If the solver serves its data, a game names its
        segment in three cases: the result is true; the challenger has found a false segment; or the solver is
        silent, so that the challenger wins in any case. In all other cases the segment is left out, because
        an arbitrary segment could be false by luck.
        """
        work = self._task.work
        names = work.serves & (games.right | (work.false == 0) | self._silent(games))
        return np.where(names, games.segments, NO_SEGMENT)

    def _any(self, shape: tuple[int, ...]) -> Segments:
        """The last segment. Challengers that have not replayed name this one."""
        return np.full(shape, self._checker.parameters.segments, dtype=np.int32)

    # ------------------------------------------------------------------ actions

    def _sit(self, rows: Indices, accounts: Indices, coins: Floats, outages: Floats) -> None:
        """Let the drawn accounts act in their seats, and record their attestations and challenges."""
        checker, task = self._checker, self._task
        there = (accounts != NOBODY) & checker.online(outages)
        hit = self._hit[:, rows]
        served = np.broadcast_to(task.work.serves[rows], hit.shape)
        seats = Seats(
            checker.parameters,
            served,
            hit,
            np.zeros_like(hit),
            coins,
            task.prices.gas[rows],
            task.prices.work[rows],
        )
        others: Flags = np.logical_or.reduce(self._attested[:, rows], axis=0)
        check = checker.act(seats, accounts, there, others)
        self._sittings.append(Sitting(rows, accounts, check))
        self._attested[:, rows] |= check.attests
        if check.challenges.any() or not self._games:
            shape = self._attested.shape
            held, opened = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
            right = np.zeros(shape, dtype=np.bool_)
            held[:, rows] = checker.in_ledger(accounts)
            opened[:, rows] = check.challenges
            right[:, rows] = check.challenges & hit & check.replays
            self._games.append(Games.of(held, opened, right, self._least, seated=True))

    def _pass_by(self) -> Looks | None:
        """Draw a segment for each bystander. Let the bystanders act, except those that act only on stalled
        tasks. Returns None if there are no bystanders.
        """
        checker, task = self._checker, self._task
        count = checker.population.bystander_count
        if not count:
            return None
        random = checker.random.bystanders
        segment = 1 + random.below(checker.parameters.segments, count)
        shape = segment.shape
        view = Passing(
            checker.parameters,
            np.broadcast_to(task.work.serves, shape),
            segment <= task.work.false,
            np.broadcast_to(task.wrong, shape),
            random.uniform(count),
        )
        looks = Looks(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), segment, view)
        self._look(looks, task.live, late=False)
        return looks

    def _retrain(self, stalled: Flags) -> None:
        """Let the bystanders that act only on stalled tasks act on the tasks in `stalled`."""
        if self._looks is not None and stalled.any():
            self._look(self._looks, stalled, late=True)

    def _look(self, looks: Looks, tasks: Flags, *, late: bool) -> None:
        for group in self._checker.population.bystanders:
            if group.strategy.late != late:
                continue
            mine = group.members
            seen = looks.view
            view = seen._replace(
                served=seen.served[mine],
                hit=seen.hit[mine],
                wrong=seen.wrong[mine],
                uniform=seen.uniform[mine],
            )
            look = group.strategy.look(view)
            looks.replays[mine], looks.games[mine] = look.replays * tasks, look.games * tasks
            false = view.wrong if late else view.hit
            accounts = np.broadcast_to(self._checker.bystanders(mine), false.shape)
            right = (looks.replays[mine] > 0) & false
            # Replaying everything finds the first false segment, and false segments are numbered first.
            named = np.where(right, 1 if late else looks.segment[mine], self._any(right.shape))
            unopened = None if look.unopened is None else look.unopened * tasks
            self._games.append(
                Games.of(accounts, looks.games[mine], right, named.astype(np.int32), unopened=unopened)
            )
