"""Finds, watches and answers the games against this solver, in time and on its own thread (dispute.md section
6).

`Strategy.defence` chooses the moves. This module sends each of them once, even across restarts. While moves
are computed, nothing else is computed (`turns`), with one exception: if an answer in another game is due
earlier, a long replay pauses for it between two steps. All moves that a game asks for are sent together.
While they wait for their blocks, the next game's moves are computed. So each move costs its computing time,
but the time of inclusion is spent only once.

What is known of a game holds as long as the block in which it was seen is on the chain. After a
re-organisation, the games that were seen in blocks no longer on the chain are read again: a number may now
belong to another task's game, and a closed game may be open again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING

from protocol.chain.errors import ChainError, Reverted
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sent
from protocol.chain.views import GameState
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView, Phase
from protocol.execution.turns import Stopped
from protocol.tasks.owed import moves_left
from solver.context import Context
from solver.database import TAKEN, Stage
from solver.failures import WRONG_BITS, Failures

if TYPE_CHECKING:
    from protocol.chain.blocks import Block
    from protocol.chain.game_view import GameReader

STATES_SHARE = 8
"""A second answer for a task may begin only if the states of all begun answers, including the new one, take
at most 1/`STATES_SHARE` of the machine's memory.
"""
ASKING = (Phase.STEP, Phase.FRAME, Phase.SPLIT)
"""Phases in which the solver may have to move although no demand is open."""


class Defence:
    """Watches every game on a task of this solver until the task is over, after which nothing can be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._failures = Failures("game", context.metrics, context.log)
        self._seen = 0
        """Games up to this number have been read."""
        self._stops: list[tuple[int, str, int]] = []
        """One entry for each of the latest calls of `_look`: the number of the block that was read, the hash
        of this block, and how many games had been read by then. The entries reach back `reorg_depth` blocks.
        """
        self._ended: dict[int, int] = {}
        """Maps each closed game to the number of the block in which it was closed, until that block is
        `reorg_depth` deep.
        """
        self._later: set[int] = (
            set()
        )  # games on tasks that cannot be replayed yet, because their bundle is still being loaded
        self._others: dict[int, int] = {}
        """Maps each game that this solver need not defend, according to its database, to the game's task."""
        self._open: dict[int, GameReader] = {}
        self._tasks: dict[int, int] = {}
        self._runs: dict[int, Run] = {}
        self._sent: dict[int, list[tuple[Move, Sent]]] = {}
        self._answering: dict[int, float] = {}
        """Maps each game that is being answered to the time when its answer is due. The answer that was begun
        last is being computed; the answers begun before it are paused until it is done.
        """
        self._bytes: dict[int, int] = {}
        """The size of a state in bytes, by task."""
        self._looked = self._look_took = 0.0
        self._reserved: ExitStack | None = None
        """While this is set, no training step begins between two rounds of answers. The defence thus waits
        for at most one training step, not for one in each round.
        """
        self._closed = Event()
        # A daemon, so that a second Ctrl-C ends the process without waiting for a step.
        self._thread = Thread(target=self._run, name="solver-defence", daemon=True)
        self.owes = False
        """Whether a move of this solver is known to be due in some game."""
        self.clocks: dict[int, tuple[int, int]] = {}
        """Maps each open game with a running clock to its task and the time when the clock ends. The clock
        may be the solver's or the challenger's.
        """
        self.failure: BaseException | None = None
        """The error that ended the defence because this machine computes wrong bits; None if there is none."""

    def start(self) -> None:
        """Watch and answer until `close`."""
        self.owes = True  # until the first look
        self._thread.start()

    def close(self) -> None:
        """End after the present `tick`. Once the turns are closed (`Turns.close`), the tick takes no further
        turn, but still completes and sends the present answer. Sent transactions are in the journal.
        """
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                worked = self.tick()
            except Stopped:
                return
            except WRONG_BITS as error:
                self.failure = error
                return
            except ChainError as error:
                self._context.log.warning("defence waits for the chain", error=str(error))
                worked = self.owes = False
            except Exception as error:
                self._failures.note(0, error, 0.0)
                worked = self.owes = False
            if not worked:
                self._release()
                self._closed.wait(self._context.settings.pace)

    def tick(self) -> bool:
        """Answer what is due now, the most urgent first. Returns True if a move was sent, because more may
        then be due at once.

        The most urgent game is the one with the least time left for computing. This is the time left on its
        clock, minus the time that its further moves may take besides computing (`_urgencies`). The order is
        computed again after a while, because new demands may come. Games whose clock does not run need no
        answer yet.
        """
        self._drop_what_is_over()
        if not (self._open or self._context.database.live(*TAKEN)):  # there is nothing to lose
            self.owes = False
            self.clocks = {}
            return False
        states = self._look()
        running = [state for state in states.values() if not state.waits]
        self.clocks = {state.game: (state.task, state.deadline) for state in running}
        urgencies = self._urgencies(states)
        began, owes, worked = time.monotonic(), False, False
        for number in by_deadline(urgencies, urgencies.__getitem__):
            if number not in self._open:  # it ended while another game was answered
                continue
            with self._failures.kept(number, task=self._tasks[number]):
                if self._is_sending(number):
                    owes = True
                elif self._answer(number):
                    self._reserve()
                    owes = worked = True
            if worked and time.monotonic() - began > self._context.settings.pace:
                break
        self.owes = owes
        self._context.metrics.games.set(len(self._open))
        return worked

    def _reserve(self) -> None:
        if self._reserved is None:
            self._reserved = ExitStack()
            self._reserved.enter_context(self._context.turns.reserved())

    def _release(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _make_way(self) -> None:
        """Called between two steps of an answer: answers other games that are due earlier. Reading the games'
        states takes at most a fifth of the time. A second answer for the same task waits if memory is too
        small for its states (`_has_room`). While a game waits for memory, only games that are due before it
        are answered.
        """
        if time.monotonic() - self._looked < max(self._context.settings.pace, 4 * self._look_took):
            return
        try:
            states = self._look()
            urgencies = self._urgencies(states)
        except ChainError as error:  # the present answer is still due
            self._looked = time.monotonic()
            self._context.log.warning("defence waits for the chain", error=str(error))
            return
        asking = {
            number: due
            for number, due in urgencies.items()
            if number not in self._answering
            and (states[number].demand_open or states[number].phase in ASKING)
        }
        waiting = [due for number, due in asking.items() if not self._has_room(number)]
        due = min([*self._answering.values(), *waiting])
        for number in before(asking, due, self._has_room):
            if number not in self._open:  # it ended while another game was answered
                continue
            with self._failures.kept(number, task=self._tasks[number]):
                if not self._is_sending(number):
                    self._answer(number)

    def _has_room(self, number: int) -> bool:
        """Whether there is memory to answer a game now. The answers that are already begun are paused
        meanwhile, and each of them holds a state. One answer per task is always allowed.
        """
        from protocol.execution.replay import machine_memory

        tasks = [self._tasks[other] for other in self._answering if other in self._tasks]
        held = sum(self._bytes.get(task, 0) for task in [*tasks, self._tasks[number]])
        return self._tasks[number] not in tasks or held <= machine_memory() // STATES_SHARE

    def _look(self) -> dict[int, GameState]:
        """Discover games, and read the state of the open ones."""
        began = time.monotonic()
        with self._context.client.connection.view() as block:
            self._rewind(block)
            self._discover()
            states = self._states(block.number)
            self._stop_at(block)
        self._looked = time.monotonic()
        self._look_took = self._looked - began
        return states

    def _urgencies(self, states: Mapping[int, GameState]) -> dict[int, float]:
        """Maps each game to the time by which computing for it must end: the end of its clock, less the time
        reserved for further moves. Games that wait for an earlier game are left out.
        """
        each = self._context.seconds_each() if states else 0.0
        return {number: _urgency(state, each) for number, state in states.items() if not state.waits}

    def _rewind(self, block: Block) -> None:
        """Forget what was seen in blocks that are not on the chain any more. The games seen there are read again."""
        from protocol.chain.events import standing

        connection = self._context.client.connection
        last, self._seen = -1, 0
        del self._stops[standing(connection, [stop[:2] for stop in self._stops], block) :]
        if self._stops:
            last, _, self._seen = self._stops[-1]
        reopened = {number for number, closed in self._ended.items() if closed > last}
        for number in reopened:
            del self._ended[number]
        self._later = {number for number in self._later | reopened if number <= self._seen}
        self._others = {number: task for number, task in self._others.items() if number <= self._seen}

    def _stop_at(self, block: Block) -> None:
        """Remember the block in which `_look` has just read all games."""
        if self._stops and self._stops[-1][0] == block.number:
            self._stops.pop()
        self._stops.append((block.number, block.hash, self._seen))
        deep = block.number - self._context.client.connection.chain.reorg_depth
        while len(self._stops) > 1 and self._stops[1][0] <= deep:
            self._stops.pop(0)
        self._ended = {number: closed for number, closed in self._ended.items() if closed > deep}

    def _states(self, block: int) -> dict[int, GameState]:
        """The state of each open game, as of block number `block`, except games that pause after a failure. A
        closed game is not watched any more once the moves sent in it are counted. A game may be missing
        because of a re-organisation, or because the chain's node lags.
        """
        found: dict[int, GameState] = {}
        for number, task in list(self._tasks.items()):
            if self._failures.rests(number):
                continue
            with self._failures.kept(number, task=task):
                state = self._context.client.game.game(number)
                if state.task != task:  # it is not there at this block
                    continue
                if state.phase is not Phase.CLOSED or number in self._sent:
                    found[number] = state
                    continue
                self._close(number)
                self._ended[number] = block
                self._context.log.warning("game over", game=number, task=task, verdict=state.verdict.name)
        return found

    def _drop_what_is_over(self) -> None:
        """Stop watching the games of finished tasks: they cannot be lost any more, whatever they still demand."""
        rows = {task: self._context.database.task(task) for task in set(self._tasks.values())}
        over = {task for task, row in rows.items() if row is not None and row.stage is Stage.OVER}
        for number in [number for number, task in self._tasks.items() if task in over]:
            self._close(number)

    def _discover(self) -> None:
        game = self._context.client.game
        newest = game.games()
        game.ahead(range(self._seen + 1, newest + 1))
        taken = set(self._context.database.live(*TAKEN))
        for number in [number for number, task in self._others.items() if task in taken]:
            del self._others[number]
            self._later.add(number)
        for number in [*sorted(self._later), *range(self._seen + 1, newest + 1)]:
            try:
                task = game.game(number).task
            except Reverted as error:  # others' games are read too: an error in one must not end this solver
                self._context.log.warning("game cannot be read", game=number, error=error.name)
                continue
            if task == 0:  # this node lags behind the one that counted the games: look again later
                newest = min(newest, number - 1)
                break
            if number in self._open:
                if task == self._tasks[number]:
                    continue
                # After a re-organisation the number belongs to another task's game.
                self._context.log.warning("another game", game=number, task=task, before=self._tasks[number])
                self._close(number)
            if task not in taken:
                self._later.discard(number)
                self._others[number] = task
                continue
            self._later.add(number)
            if self._context.catalog.run_store(task) is None or self._failures.rests(number):
                continue
            with self._failures.kept(number, task=task):
                self._watch(number, task)
                self._later.discard(number)
        self._seen = max(self._seen, newest)

    def _watch(self, number: int, task: int) -> None:
        from protocol.chain.game_view import GameReader

        run_store = self._context.catalog.run_store(task)
        assert run_store is not None
        client = self._context.client
        self._open[number] = GameReader(
            client.game, number, run_store.program.program, client.deployment.block
        )
        self._tasks[number] = task
        self._bytes[task] = sum(type_.nbytes for type_ in run_store.program.state_types)
        if task not in self._runs:
            self._runs[task] = run_store.replay()
        self._context.log.warning("challenged", game=number, task=task)

    def _is_sending(self, number: int) -> bool:
        """Whether this game cannot be answered yet, because moves are still being sent, or because a move was
        refused and the game must be read again. Counts the mined moves. Raises the error that prevented a
        move.
        """
        sent = self._sent.get(number, [])
        outcomes = self._context.client.outcomes([one for _, one in sent])
        if None in outcomes:
            return True
        self._sent.pop(number, None)
        refused, failure = False, None
        for (move, _), outcome in zip(sent, outcomes, strict=True):
            if isinstance(outcome, Receipt):
                self._context.count(move.function, outcome, game=number, note=move.note)
            elif isinstance(outcome, Reverted):  # the game has changed, or the time is over: look again
                self._context.log.warning("move refused", game=number, move=move.function, error=outcome.name)
                refused = True
            else:
                failure = outcome
        if failure is not None:
            raise failure
        return refused

    def _answer(self, number: int) -> bool:
        """Send all moves that this solver owes in a game. On the challenger's turn, end the game if the
        challenger's time has run out. Returns whether anything was sent.
        """
        context = self._context
        view = self._open[number].view()
        # The next look ends a closed game, and finds the one that has its number after a re-organisation.
        if view.phase is Phase.CLOSED or view.task != self._tasks[number]:
            return False
        if not view.solver_to_move:
            return self._call_time(view)
        # Read again, because at the last look it may have been the challenger's turn.
        due = _urgency(context.client.game.game(number), context.seconds_each())
        self._answering[number] = due
        try:
            with context.turns.urgent(self._make_way, due):
                moves = context.strategy.defence(view, self._runs[view.task])
        finally:
            del self._answering[number]
        if moves:
            self._send(number, moves, view.head)
        return bool(moves)

    def _send(self, number: int, moves: Sequence[Move], head: bytes) -> None:
        sent = self._context.client.game.send_moves(moves, head)
        self._sent[number] = list(zip(moves, sent, strict=True))

    def _close(self, number: int) -> None:
        """Stop watching a game. If this was the last watched game of its task, the task's replay is
        released too.
        """
        del self._open[number]
        self._sent.pop(number, None)
        task = self._tasks.pop(number)
        if task not in self._tasks.values():
            del self._runs[task]

    def _call_time(self, view: GameView) -> bool:
        """End a game if its challenger's time has run out. Returns whether the call was sent."""
        client = self._context.client
        with client.connection.view() as block:
            state = client.game.game(view.game)
        if state.head != view.head or block.time <= state.deadline:
            return False
        self._send(view.game, [Move("timeOut", (view.game,))], view.head)
        return True


def _urgency(state: GameState, each: float) -> float:
    return state.deadline - each * moves_left(state.phase, state.depth, state.demands)


def by_deadline(games: Iterable[int], deadline: Callable[[int], float]) -> list[int]:
    """The numbers of games, sorted by deadline and, if equal, by number."""
    return sorted(games, key=lambda number: (deadline(number), number))


def before(deadlines: Mapping[int, float], due: float, may: Callable[[int], bool]) -> list[int]:
    """The games that may be answered and are due before `due`, the earliest first."""
    return [n for n in by_deadline(deadlines, deadlines.__getitem__) if deadlines[n] < due and may(n)]
