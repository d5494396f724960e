"""A task's whole life: the agents decide as they do in the engine, the chain carries it out, the books follow.

Where the engine's rules say who wins, who is rewarded and whether a task settles, the chain must say the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from protocol.chain.client import Client
from protocol.chain.probe import HISTORY_CONTRACT
from protocol.chain.views import TaskView
from protocol.commitments import ProgressTree
from protocol.dispute.view import Verdict
from protocol.program import cost
from protocol.task import ARITHMETIC, Terms
from sim.engine.task import Checks, Task
from sim.errors import Disagreement
from sim.mechanism.arrays import Flags
from sim.mechanism.attestation import attested, satisfied
from sim.mechanism.auctions import NO_ASK, first_price
from sim.mechanism.booking import DRAWER, FIRST_SOLVER, SUBMITTER
from sim.mechanism.draw import Draw
from sim.replay.amounts import SCALE
from sim.replay.comparison import BOND, ESCROW, STAKE
from sim.replay.drawing import raised, redraw
from sim.replay.games import Accusation, Sides, commit, open_game, play
from sim.replay.shadow import Challenge, Shadow
from sim.replay.stage import Stage
from sim.replay.training import STEPS, Trained

_UNLOOKED: Final = bytes(31) + b"\x01"
"""The step root of an attestation by somebody who has replayed nothing."""
_HISTORY_SIZE: Final = 8_191
"""EIP-2935: block n's hash lies in storage slot n mod 8191."""
_REACH: Final = 256
"""Blocks whose hash BLOCKHASH knows."""


class _Task(NamedTuple):
    """A task that was submitted."""

    number: int
    solver: int
    price: int
    escrow: int
    serves: bool
    trained: Trained


class _Game(NamedTuple):
    """A challenge and the number of its game."""

    number: int
    challenge: Challenge


class Life:
    """Plays one task after the other on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._shadow = Shadow(stage.scenario)
        self._books = stage.books
        self._amounts = stage.amounts
        self._setting = stage.scenario.setting
        self._submitter: Client = stage.clients[SUBMITTER]
        self._referee: Client = stage.clients[DRAWER]
        """Whoever calls what anybody may call."""

    def play(self) -> str:
        """One task; how it ended on the chain, which is how it ended in the engine."""
        before = self._shadow.ends()
        end = self._play(self._shadow.begin())
        ended = [name for name, count in self._shadow.ends().items() if count != before[name]]
        self._same("the end of a task", ended, [end])
        if self._stage.scenario.exact:
            own, theirs = self._books.ledger.gains(), self._shadow.books.ledger.gains()
            self._same(
                "gains in the engine's own units", theirs[:, 0].tolist(), (own[:, 0] // SCALE).tolist()
            )
        return end

    def _play(self, engine: Task) -> str:
        task, escrow = self._post()
        sold = self._bid(task)
        self._until(self._referee.market.task(task).bids_until)
        self._referee.market.assign(task)
        if sold is None:
            self._books.release(SUBMITTER, ESCROW, escrow)
            return self._ended(task, "unsold")
        solver, price = sold
        self._same("the winner of an auction", int(engine.solver[0]), solver)
        if not engine.live[0]:
            return self._expire(task, solver, escrow)
        trained = self._stage.training.by(int(engine.work.false[0]))
        self._submit(task, solver, trained)
        serves = bool(engine.work.serves[0])
        submitted = _Task(task, solver, price, escrow - self._amounts.draw_fee, serves, trained)
        drawn = self._draw(task)
        checks = self._shadow.end(engine, drawn)
        found: Flags = np.logical_or.reduce(np.isin(drawn.segments, sorted(trained.false_segments)), axis=0)
        self._same("seats whose replay differs", checks.hit.tolist(), found.tolist())
        done = self._attest(submitted, checks)
        if self._dispute(submitted, checks):
            return "convicted"
        return self._close(submitted, drawn, done)

    # ------------------------------------------------------------------ posting, bidding, training

    def _post(self) -> tuple[int, int]:
        number = self._submitter.market.tasks() + 1
        task, _ = self._submitter.market.post(self._terms(number))
        escrow = self._amounts.budget + self._amounts.draw_fee + self._reserve
        self._books.lock(SUBMITTER, ESCROW, escrow)
        self._stage.booked(f"task {task} posted")
        return task, escrow

    def _bid(self, task: int) -> tuple[int, int] | None:
        """Everybody bids in turn who is below the bid that stands. Account and price of the winner."""
        asks = np.full(self._shadow.asks.shape, NO_ASK * SCALE, dtype=object)
        for number, ask in enumerate(self._shadow.asks[:, 0]):
            if ask <= self._setting.budget:
                asks[number, 0] = self._amounts.price(int(ask), number)
        standing = None
        for number, price in enumerate(asks[:, 0]):
            if price <= self._amounts.budget and (standing is None or price < asks[standing, 0]):
                if standing is not None:
                    self._books.release(self._bidder(standing), STAKE, self._amounts.stake)
                standing, bidder = number, self._bidder(number)
                self._stage.clients[bidder].market.bid(task, price)
                self._books.lock(bidder, STAKE, self._amounts.stake)
                self._stage.booked(f"task {task}: {self._name(bidder)} bids {price}")
        sold, winner, due = first_price(asks, np.array([self._amounts.budget], dtype=object))
        if not sold[0]:
            return None
        solver, price = self._bidder(int(winner[0])), int(due[0])
        view = self._submitter.market.task(task)
        self._same("solver and price", (self._address(solver), price), (view.solver, view.price))
        return solver, price

    def _bidder(self, number: int) -> int:
        """The account of an ask: the submitter's own is the last."""
        return FIRST_SOLVER + number if number < self._stage.scenario.population.solver_count else SUBMITTER

    def _expire(self, task: int, solver: int, escrow: int) -> str:
        self._until(self._submitter.market.task(task).train_until)
        self._referee.market.expire(task)
        self._books.release(SUBMITTER, ESCROW, escrow)
        self._books.release(solver, STAKE, self._amounts.stake)
        self._books.expired(solver)
        return self._ended(task, "expired")

    def _submit(self, task: int, solver: int, trained: Trained) -> None:
        roots = trained.roots
        tree = ProgressTree(list(roots)).at(len(roots))
        last = len(roots) - 1
        self._stage.clients[solver].market.submit(
            task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
        )
        self._stage.booked(f"task {task}: submitted, {trained.false} of {last} segments false")

    # ------------------------------------------------------------------ audit

    def _draw(self, task: int) -> Draw:
        setting, client = self._setting, self._referee
        for _ in range(self._stage.scenario.missed_draws):
            self._miss(task)
        block = client.market.task(task).draw_block
        self._stage.devnet.mine(max(0, block - client.connection.block().number) + 1)
        receipt = client.audit.draw(task, block)
        self._books.drawn()
        self._stage.booked(f"task {task}: drawn")
        each = raised(setting.segments_per_verifier, setting.verifiers, self._stage.scenario.missed_draws)
        seed = client.audit.event(receipt, "Drawn").arguments["seed"]
        drawn = redraw(seed, self._stage.slots, setting.verifiers, setting.segments, each, setting.matches)
        duties = [(duty.verifier, duty.segment) for duty in client.audit.duties(task)]
        expected = [
            (self._address(self._verifier(drawn, seat)), int(drawn.segments[duty, seat, 0]))
            for seat, duty in _due(drawn)
        ]
        self._same("duties of the draw", expected, duties)
        return drawn

    def _miss(self, task: int) -> None:
        """The draw's block gets out of reach: BLOCKHASH forgets it, and its place in the history is cleared.

        8,191 blocks would clear it too, in minutes.
        """
        devnet, client = self._stage.devnet, self._referee
        block = client.market.task(task).draw_block
        devnet.mine(max(0, block - client.connection.block().number) + _REACH + 1)
        place = f"0x{block % _HISTORY_SIZE:064x}"
        devnet.connection.request("anvil_setStorageAt", HISTORY_CONTRACT, place, "0x" + "00" * 32)
        client.audit.missed(task)
        self._stage.booked(f"task {task}: draw missed")

    def _attest(self, task: _Task, checks: Checks) -> Flags:
        drawn = checks.drawn
        done = attested(drawn, checks.check.attests)
        for number, (seat, duty) in enumerate(_due(drawn)):
            if done[duty, seat, 0]:
                segment = int(drawn.segments[duty, seat, 0])
                root = task.trained.steps_root(segment) if checks.check.replays[seat, 0] else None
                client = self._stage.clients[self._verifier(drawn, seat)]
                client.audit.attest(task.number, number, root or _UNLOOKED)
        self._stage.booked(f"task {task.number}: {int(done.sum())} of {int(drawn.due.sum())} duties attested")
        return done

    # ------------------------------------------------------------------ disputes

    def _dispute(self, task: _Task, checks: Checks) -> bool:
        """All commit, then open; who wins plays first. Tell whether the solver was convicted."""
        accused = self._shadow.challenges(len(checks.drawn.verifiers))
        named = [self._accusation(task, checks, number, each) for number, each in enumerate(accused)]
        for each in named:
            commit(self._stage.clients[each.account], task.number, each)
            self._books.lock(each.account, BOND, self._amounts.challenge_bond)
            self._stage.booked(f"task {task.number}: {self._name(each.account)} commits to a challenge")
        games = [
            _Game(open_game(self._stage, task.number, name, task.trained), each)
            for name, each in zip(named, accused, strict=True)
        ]
        right = [game for game in games if game.challenge.wins]
        if not right:
            for game in games:
                self._lose(task, game)
            return False
        played = right[-1] if self._stage.scenario.newest_first else right[0]
        self._win(task, played, rewarded=right[0].challenge.account)
        for game in games:
            if game != played:
                self._moot(task, game)
        return True

    def _accusation(self, task: _Task, checks: Checks, number: int, each: Challenge) -> Accusation:
        """Whoever has looked names the first false segment that it saw; who has not, the last one."""
        segment: int | None = self._setting.segments
        if not task.serves:
            segment = None
        elif each.wins and task.trained.false_segments:
            seen = task.trained.false_segments
            if each.seat is not None:
                seen = seen.intersection(checks.drawn.segments[:, each.seat, 0].tolist()) or seen
            segment = min(seen)
        return Accusation(each.account, segment, number.to_bytes(32, "big"))

    def _win(self, task: _Task, game: _Game, *, rewarded: int) -> None:
        """The solver is convicted; the engine rewards whoever committed first of those that are right."""
        # A solver that serves, and loses a game about nothing false, has lost it by being silent.
        answers = task.serves and bool(task.trained.false_segments)
        due = Verdict.SOLVER_FALSE if answers else Verdict.SOLVER_SILENT
        self._same("a verdict", due, self._run(task, game, answers=answers))
        self._books.release(game.challenge.account, BOND, self._amounts.challenge_bond)
        self._books.release(task.solver, STAKE, self._amounts.stake)
        self._books.release(SUBMITTER, ESCROW, task.escrow)
        self._books.convicted(task.solver, rewarded)
        how = self._stage.judged[-1] if answers else "silence"
        self._stage.booked(f"task {task.number}: {self._name(task.solver)} convicted: {how}")

    def _lose(self, task: _Task, game: _Game) -> None:
        self._same("a verdict", Verdict.CHALLENGER_SILENT, self._run(task, game, answers=True))
        self._books.dismissed(task.solver, game.challenge.account)
        who = self._name(game.challenge.account)
        self._stage.booked(f"task {task.number}: {who} has nothing to show and loses its bond")

    def _moot(self, task: _Task, game: _Game) -> None:
        account = game.challenge.account
        self._stage.clients[account].game.close_moot(game.number)
        self._books.release(account, BOND, self._amounts.challenge_bond)
        self._stage.booked(f"task {task.number}: game of {self._name(account)} is moot")

    def _run(self, task: _Task, game: _Game, *, answers: bool) -> Verdict:
        clients = self._stage.clients
        trained, looked = task.trained, game.challenge.wins
        run = (trained.checked if task.serves else trained.repeated) if looked else None
        sides = Sides(clients[task.solver], clients[game.challenge.account], self._referee)
        return play(self._stage, sides, game.number, trained.run if answers else None, run)

    # ------------------------------------------------------------------ ends

    def _close(self, task: _Task, drawn: Draw, done: Flags) -> str:
        """Settled or void, when the window is over."""
        enough = bool(satisfied(drawn, done, self._setting.matches)[0])
        self._same("attestations suffice", enough, self._referee.audit.satisfied(task.number))
        self._until(self._view(task).challenge_until)
        self._books.release(SUBMITTER, ESCROW, task.escrow)
        self._books.release(task.solver, STAKE, self._amounts.stake)
        if not enough:
            self._referee.market.void(task.number)
            return self._ended(task.number, "void")
        self._referee.market.settle(task.number)
        seats = self._stage.first_verifier + drawn.verifiers
        self._books.settled(task.solver, seats, done, task.price, self._reserve)
        return self._ended(task.number, "settled")

    def _ended(self, task: int, how: str) -> str:
        self._stage.booked(f"task {task}: {how}")
        return how

    # ------------------------------------------------------------------ small things

    @property
    def _reserve(self) -> int:
        return self._amounts.reserve(self._setting.verifiers, self._setting.segments_per_verifier)

    def _terms(self, number: int) -> Terms:
        training, setting, amounts = self._stage.training, self._setting, self._amounts
        program = training.program
        return Terms(
            program_id=program.program.id,
            constants_root=program.constants_root(training.fixed),
            initial_state=program.state_root(training.initial),
            bundle_hash=number.to_bytes(32, "big"),
            constants=len(training.fixed),
            state_tensors=len(program.state),
            segments=setting.segments,
            segment_steps=STEPS,
            step_operations=cost(program.program).operations,
            state_bytes=program.state_bytes,
            budget=amounts.budget,
            stake=amounts.stake,
            restitution=amounts.restitution,
            audit_fee=amounts.audit_fee,
            delay_penalty=amounts.delay_penalty,
            bidding_period=600,
            training_period=10_000,
            challenge_period=60_000,
            attest_period=50_000,
            solver_clock=500,
            challenger_clock=500,
            verifiers=setting.verifiers,
            segments_per_verifier=setting.segments_per_verifier,
            matches=setting.matches,
            arithmetic=ARITHMETIC,
            bundle="http://127.0.0.1/none",
        )

    def _view(self, task: _Task) -> TaskView:
        return self._referee.market.task(task.number)

    def _until(self, time: int) -> None:
        """Let the chain's clock pass a time."""
        self._stage.devnet.skip(max(0, time - self._referee.now()) + 1)

    def _verifier(self, drawn: Draw, seat: int) -> int:
        return self._stage.first_verifier + int(drawn.verifiers[seat, 0])

    def _name(self, account: int) -> str:
        return self._stage.names[account]

    def _address(self, account: int) -> str:
        return self._stage.clients[account].address

    def _same(self, what: str, expected: object, chain: object) -> None:
        if expected != chain:
            raise Disagreement(
                f"engine and contracts disagree (scenario {self._stage.scenario.name}), {what}: expected {expected}, "
                f"chain {chain}; one of the two is wrong: report this"
            )


def _due(drawn: Draw) -> list[tuple[int, int]]:
    """(seat, duty) in the order of the board's list."""
    duties, seats, _ = drawn.due.shape
    return [(seat, duty) for seat in range(seats) for duty in range(duties) if drawn.due[duty, seat, 0]]
