"""The dispute game: games, claims and moves (contracts/src/interfaces/IDisputeGame.sol).

`protocol.dispute` decides the moves, and this module sends them unchanged. Only opening and closing a game
have their own methods.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sent
from protocol.chain.views import Claim, GameState
from protocol.commitments import CHUNK
from protocol.dispute.moves import Move
from protocol.dispute.openings import Leaf

DEMANDS: Final = 76
"""Number of demands in the longest game against a solver that serves nothing
(contracts/src/dispute/Demands.sol).
"""
GAS: Final = DEMANDS * 135_000 + 20 * 200_000 + 300_000
"""Gas of the challenger's moves in the longest game. The first term is for the demands, the second for the
descent through eight calls and for the splits, and the third for the judgment. Each figure is at least the
one that contracts/README.md, "Gas", gives.
"""


class Game(BoundContract):
    """The dispute game. A move raises Reverted with the game's own error if it is out of turn, if it is late,
    or if it proves nothing.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._paying = threading.Lock()
        self._counted: dict[str, int] = {}
        """The credit reserved for demands in flight: for each demand's intent, how many wei of the account's
        credit are to pay the demand's deposits.
        """

    def challenge(
        self, task: int, segment: int, salt: bytes, before: Leaf, after: Leaf
    ) -> tuple[int, Receipt]:
        """Open a game on a segment by revealing the account's commitment. Returns the game's number and the
        receipt.
        """
        receipt = self.write_once("challenge", task, segment, salt, before, after)
        return self._number(receipt), receipt

    def challenge_blind(self, task: int, salt: bytes) -> tuple[int, Receipt]:
        """Open a game before the wrong segment is known, by revealing the account's commitment. Returns the
        game's number and the receipt.
        """
        receipt = self.write_once("challengeBlind", task, salt)
        return self._number(receipt), receipt

    def send_move(self, move: Move, head: bytes) -> Receipt:
        """Make a move. `head` is the game's present head, a hash that identifies the state in which the move
        is made (`GameState.head`). The same move on the same head is made only once, even across restarts. A
        demand is sent with its deposits. If the deposits are too low for the base fee of its block, the
        demand is refused and can be repeated.
        """
        if not move.answers:
            return self.write_once(move.function, *move.arguments, about=head.hex())
        return self._demand(move, head.hex())

    def _demand(self, move: Move, head: str) -> Receipt:
        """Send a demand. Several demands may wait for their receipts at the same time, and no two of them use
        the same credit.
        """
        sender, intent = self._sender(move.function), self._intent(move.function, move.arguments, head)
        try:
            with self._paying:
                counted = sum(self._counted.values()) - self._counted.get(intent, 0)
                due, credit = self.deposit(move.answers), max(0, self.credit(sender.address) - counted)
                self._counted.setdefault(intent, min(due, credit))
                call = self._call(move.function, move.arguments, max(0, due - credit))
                (sent,) = sender.hand_over([(call, intent)])
            receipt = sender.receipt(sent)
        except BaseException:
            self._uncount(intent, pending=self.is_signed(move.function, *move.arguments, about=head))
            raise
        self._uncount(intent)
        return receipt

    def _uncount(self, intent: str, pending: bool = False) -> None:
        """Release the credit reserved for a demand, unless the demand may still be mined."""
        with self._paying:
            if not pending:
                self._counted.pop(intent, None)

    def deposit(self, answers: Sequence[int]) -> int:
        """Wei to send as the deposits of a demand, enough if the base fee doubles. For each demanded node,
        `answers` gives the bytes of the leaf, or 0 for an inner node (`Move.answers`).
        """
        fee = 2 * self.connection.block().base_fee
        # The contract rounds the mean up, so each answer may cost almost a wei more.
        return len(answers) + sum(int(self.read("depositFor", len(answers), leaf, fee)) for leaf in answers)

    def coin_of_longest(self) -> int:
        """Wei that the longest game costs its challenger at twice the present base fee: deposits and gas."""
        return DEMANDS * self.deposit((CHUNK,)) + GAS * 2 * self.connection.block().base_fee

    def credit(self, account: str) -> int:
        """Wei of the chain's coin that an account may withdraw, or pay deposits with."""
        return int(self.read("creditOf", account))

    def withdraw_credit(self) -> Receipt:
        """Withdraw the account's credit."""
        return self.write("withdrawCredit")

    def send_moves(self, moves: Sequence[Move], head: bytes) -> list[Sent]:
        """Like `send_move`, for several moves at once, without waiting for a block. No deposits are sent, so
        no move may be a demand.
        """
        return self.hand_over([(move.function, move.arguments) for move in moves], head.hex())

    def time_out(self, game: int) -> Receipt:
        """End a game in which the side to move ran out of time."""
        return self.write_once("timeOut", game)

    def close_moot(self, game: int) -> Receipt:
        """End a game of a task that was slashed in another game."""
        return self.write_once("closeMoot", game)

    def game(self, game: int, block: BlockId = "latest") -> GameState:
        """The state of a game in the contract."""
        return GameState.from_abi(game, self.read("gameOf", game, block=block))

    def ahead(self, games: Iterable[int]) -> None:
        """Prefetch the results of `game` for several games with few requests. Call this only inside a view."""
        self.ask_ahead("gameOf", *([game] for game in games))

    def claim(self, key: bytes, block: BlockId = "latest") -> Claim:
        """A claim by its key (`protocol.dispute.keys`)."""
        return Claim(*self.read("claimOf", key, block=block))

    def conviction(self, task: int, block: BlockId = "latest") -> tuple[int, int]:
        """Time of the task's conviction, in seconds since 1970, and the convicted segment. Both are 0 without
        a conviction; the segment is also 0 if the convicting game had not yet selected one.
        """
        at, segment = self.read_all("convictionOf", task, block=block)
        return int(at), int(segment)

    def games(self) -> int:
        """Number of games. Ids run from 1 to this number."""
        return int(self.read("games"))

    def _number(self, receipt: Receipt) -> int:
        return int(self.event(receipt, "Challenged").arguments["game"])
