"""Requests that an operator sends to a running node through the control socket. The operator can ask for the
node's status, have its ledger brought up to date, set the operator's order (`Mode`: to work, pause or drain),
and stop the node.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protocol.errors import Retryable
from protocol.node.home import Home
from protocol.node.stopping import Stop
from solver.bookkeeping import Bookkeeper
from solver.errors import ControlError
from solver.ledger import written
from solver.orders import WHY, Mode, keep_mode, load_mode
from solver.progress import Progress
from solver.status import account_of, as_data

if TYPE_CHECKING:
    from solver.context import Context

Part = tuple["Context", Bookkeeper]
"""One deployment that the node serves: its context and its bookkeeper."""


class Operation:
    """Answers the operator's questions and keeps the operator's order. `why_not` returns a reason, other than
    this order, why the node makes no new bids; "" if there is no such reason.
    """

    def __init__(self, home: Home, stop: Stop, progress: Progress, why_not: Callable[[], str]) -> None:
        self._home = home
        self._stop = stop
        self._progress = progress
        self._why_not = why_not
        self._since = time.time()
        self._mode = load_mode(home)
        self.parts: Sequence[Part] = ()
        self.url = ""

    @property
    def mode(self) -> Mode:
        """The order that the node follows at present."""
        return self._mode

    def drained(self) -> None:
        """End the order to drain, because the node has finished everything it owed. The node takes work
        again after its next start.
        """
        self.tell(Mode.WORKING)

    def book(self) -> None:
        """Bring all ledgers up to date. Raises ChainError, sqlite3.Error."""
        for _, bookkeeper in self.parts:
            bookkeeper.book()

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a question of the control socket. Raises ControlError, and the error of a refused request."""
        match question.get("do"):
            case "status":
                pass
            case "pause":
                self.tell(Mode.PAUSED)
            case "resume":
                self.tell(Mode.WORKING)
            case "drain":
                self.tell(Mode.DRAINING)
            case "stop":
                self._stop.ask()
            case "book":
                try:
                    self.book()
                except sqlite3.Error as error:
                    raise Retryable("the ledger", expected="to be written", got=error) from error
            case other:
                raise ControlError(
                    "a question",
                    expected="status, pause, resume, drain, stop or book",
                    got=repr(other)[:80],
                )
        return self._report()

    def tell(self, mode: Mode) -> None:
        """Give an order that takes effect now and after a restart. Raises OrdersError, HomeError."""
        keep_mode(self._home, mode)  # first, so that the order survives a kill
        self._mode = mode

    def _report(self) -> dict[str, Any]:
        (leading, _) = self.parts[0]
        connection = leading.client.connection
        return {
            "pid": os.getpid(),
            "since": written(int(self._since)),
            "mode": "stopping" if self._stop.asked else self._mode.value,
            "no_bids": WHY.get(self._mode) or self._why_not(),
            "url": self.url,
            "mark": leading.catalog.mark,
            "device": leading.settings.device,
            "speed": leading.machine.source,
            "block": connection.newest,
            "free_disk": leading.free_disk(),
            "sending": leading.sends.any,
            "accounts": [as_data(account_of(part.database, self._progress.steps)) for part, _ in self.parts],
        }
