"""The outcome of looks: digests that are not opened, and accusations with or without an answer.

The engine decides whose lock is lost, and the contracts must agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from protocol.chain.errors import Reverted
from protocol.dispute.looks import Look
from sim.engine.looking import SecondLooks
from sim.mechanism.arrays import Flags
from sim.mechanism.draw import NOBODY
from sim.replay.comparison import BOND
from sim.replay.digests import Target, place, shown
from sim.replay.disputing import Submitted
from sim.replay.games import Accusation, Sides, answer, commit, open_game
from sim.replay.looking import Looking
from sim.replay.stage import Stage


class _Shown(NamedTuple):
    """An attested look and its outcome."""

    look: Look
    looker: int
    """Ledger account number."""
    target: Target
    hidden: bool
    revealed: bool
    accused: bool
    answered: bool

    @property
    def accounts(self) -> tuple[int, int]:
        """The account that the look checks, and the looker's."""
        return self.target.attestation.account, self.looker


class Looked:
    """All attested looks of a task. The object makes the lookers' accusations and takes the locks."""

    def __init__(self, stage: Stage, task: Submitted, looks: SecondLooks, looking: Looking) -> None:
        self._stage = stage
        self._task = task
        self._shown = list(_of(stage, looks, looking))
        self._calls = stage.referee.looks

    def accuse(self) -> None:
        """Make all accusations, answer those that can be answered, and take the locks once they are due.

        If the scenario is `moot`, no accusation is answered: those that can be answered stay open.
        """
        made = [each for each in self._shown if each.accused or each.answered]
        for each in made:
            self._accuse(each)
        if not self._stage.scenario.moot:
            self._answer()
        self._take_unanswered([each for each in made if each.accused])
        self._take_unrevealed([each for each in self._shown if each.hidden])

    def close_moot(self) -> None:
        """Close accusations that were open when the solver was convicted."""
        for each in self._open():
            self._calls.close_moot(self._task.number, each.look.number)
            self._answered(each, "is moot")

    # ------------------------------------------------------------------ accusations

    def _accuse(self, each: _Shown) -> None:
        """Open a game to obtain the solver's step tree; then accuse, which drops the game."""
        stage, task, segment = self._stage, self._task, each.target.segment
        client, amounts = stage.clients[each.looker], stage.amounts
        number = each.look.number
        challenge = Accusation(each.looker, number, segment, bytes(31) + bytes([number]))
        commit(client, task.number, challenge)
        stage.books.lock(each.looker, BOND, amounts.bond)
        stage.booked(f"task {task.number}: {stage.name(each.looker)} commits to a game for a step tree")
        game = open_game(stage, task.number, challenge, task.trained)
        answer(stage, Sides(stage.clients[task.solver], client, stage.referee), game, task.trained.run)
        at = place(task.trained, segment, Random(number))
        evidence = shown(task.trained, segment, at)
        target = each.target
        client.looks.accuse(task.number, number, game, target.attestation.salt, target.root, evidence)
        stage.books.dropped(each.looker, task.solver, amounts.bond)
        stage.books.lock(each.looker, BOND, amounts.game_cost)
        accused = stage.name(target.attestation.account)
        stage.booked(f"task {task.number}: {stage.name(each.looker)} accuses {accused}")

    def _open(self) -> list[_Shown]:
        return [each for each in self._shown if each.answered]

    def _answer(self) -> None:
        for each in self._open():
            look, target, trained = each.look.number, each.target, self._task.trained
            at = place(trained, target.segment, Random(look))
            client = self._stage.clients[target.attestation.account]
            client.looks.answer(self._task.number, look, target.root, target.opening(trained, at))
            self._answered(each, "is answered")

    def _answered(self, each: _Shown, how: str) -> None:
        account, looker = each.accounts
        self._stage.books.answered(looker, account)
        self._stage.booked(
            f"task {self._task.number}: the accusation of {self._stage.name(account)} {how}, the bond is its own"
        )

    # ------------------------------------------------------------------ locks

    def _take_unanswered(self, accused: list[_Shown]) -> None:
        for each in accused:
            self._stage.until(self._calls.look(self._task.number, each.look.number).until)
            self._calls.take_unanswered(self._task.number, each.look.number)
            self._stage.books.release(each.looker, BOND, self._stage.amounts.game_cost)
            self._caught(each, "cannot answer")

    def _take_unrevealed(self, hidden: list[_Shown]) -> None:
        """Take the locks of targets that did not reveal. The contracts must refuse to take a lock twice, and
        to take one from a target that revealed.
        """
        stage, number = self._stage, self._task.number
        if not hidden:
            return
        picked, move_time = (
            stage.referee.audit.audit(number).picked_at,
            stage.referee.market.terms(number).move_time,
        )
        stage.until(picked + move_time)
        for each in hidden:
            self._calls.take_unrevealed(number, each.look.number)
            self._caught(each, "has not opened its digest")
        for each in self._shown:
            due = "AlreadyRevealed" if each.revealed else "NotAttested"
            stage.same("another lock for a look", due, self._refusal(each.look.number))

    def _caught(self, each: _Shown, why: str) -> None:
        account, looker = each.accounts
        self._stage.books.caught(account, looker)
        self._stage.halved(self._stage.amounts.seat_lock(self._stage.scenario.parameters), looker)
        self._stage.booked(
            f"task {self._task.number}: {self._stage.name(account)} {why} and loses its lock to "
            f"{self._stage.name(looker)}"
        )

    def _refusal(self, look: int) -> str:
        try:
            self._calls.read_all("takeUnrevealed", self._task.number, look)
        except Reverted as error:
            return error.name
        return ""


def _of(stage: Stage, looks: SecondLooks, looking: Looking) -> Iterator[_Shown]:
    for number, level in enumerate(looks.levels, start=1):
        for slot, looker in enumerate(level.lookers[:, 0].tolist()):
            if looker != NOBODY:
                look = Look(number, slot)
                yield _Shown(
                    look,
                    stage.first_verifier + looker,
                    looking.target(look),
                    hidden=_at(level.hidden, slot),
                    revealed=_at(level.revealed, slot),
                    accused=_at(level.accused, slot),
                    answered=_at(level.answered, slot),
                )


def _at(flags: Flags, slot: int) -> bool:
    return bool(flags[slot, 0])
