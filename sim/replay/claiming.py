"""Seats' claims on a convicted stake: the engine decides who has a claim, and the contracts must agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from protocol.chain.errors import Reverted
from protocol.dispute.looks import is_look
from sim.replay.stage import Stage


class Claim(NamedTuple):
    """What a seat is owed, as the engine decides: a game's cost and the fee, only the fee, or nothing.

    `seat` may also be the number of a look. A look is owed a game's cost or nothing.
    """

    seat: int
    account: int
    spoke: bool
    fee: bool


class Claims:
    """The claims on one conviction. `solver` is an account."""

    def __init__(self, stage: Stage, task: int, solver: int, owed: Sequence[Claim]) -> None:
        self._stage = stage
        self._task = task
        self._solver = solver
        self._owed = {claim.seat: claim for claim in owed}
        self._spoke: set[int] = set()

    def spoke(self, seat: int) -> None:
        """Record that a seat or a look spoke up, and book what the chain has already paid for it: a seat gets
        a game's cost and the fee, a look gets only the cost.
        """
        self._spoke.add(seat)
        account = self._owed[seat].account
        look = is_look(seat)
        self._stage.books.compensated(self._solver, account, look=look)
        paid = "a game's cost" if look else "a game's cost and its fee"
        self._stage.booked(f"task {self._task}: {self._stage.name(account)} has {paid}")

    def pay(self, games: Mapping[int, int]) -> None:
        """Pay the seats that have a game. `games` maps these seats to their games. Then pay the seats that
        are owed only a fee.

        After that, the contracts must refuse to pay a fee to any seat.
        """
        stage, commitments = self._stage, self._stage.referee.commitments
        for seat, game in games.items():
            commitments.compensate(self._task, seat, game)
            self.spoke(seat)
        due = {seat for seat, claim in self._owed.items() if claim.spoke}
        stage.same("seats that spoke up", due, self._spoke)
        for seat, claim in self._owed.items():
            if claim.fee:
                commitments.pay_fee(self._task, seat)
                stage.books.paid_fee(self._solver, claim.account)
                stage.booked(f"task {self._task}: {stage.name(claim.account)} has its fee")
            stage.same("another fee of a seat", "NothingOwed", self._refusal(seat))

    def burn(self) -> None:
        """Let the time for claims pass, then burn the rest of the stake."""
        stage = self._stage
        stage.until(stage.referee.commitments.claims_until(self._task))
        stage.referee.market.burn_rest(self._task)
        stage.books.burned_rest(self._solver)
        stage.booked(f"task {self._task}: what is left of the stake is burned")

    def _refusal(self, seat: int) -> str:
        try:
            self._stage.referee.commitments.read_all("payFee", self._task, seat)
        except Reverted as error:
            return error.name
        return ""
