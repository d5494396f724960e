"""A development chain on which a task's period passes as soon as nobody has anything left to do in it."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

from assay.status import open_tasks
from protocol.chain.client import Client, connect
from protocol.chain.errors import ChainError
from protocol.chain.views import NOBODY, TaskStatus

LOOK_EVERY = 0.5
"""Seconds between looks at the chain."""


class Hurrying:
    """Runs a thread that watches the chain at a URL. Whenever the only thing left to do in an open task is to
    wait, the thread advances the chain's clock. It begins once contracts are deployed on the chain.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        client: Client | None = None
        while not self._stop.wait(LOOK_EVERY):
            with suppress(ChainError):  # not deployed yet, or the chain has ended
                if client is None:
                    client = connect(self._url)
                for task in open_tasks(client)[0]:
                    self._hurry(client, task)
        if client is not None:
            client.close()

    def _hurry(self, client: Client, task: int) -> None:
        view, now = client.market.task(task), client.now()
        if view.status is TaskStatus.BIDDING and view.bidder != NOBODY:
            self._skip(client, view.bids_until + 1 - now)
        elif view.status is TaskStatus.SUBMITTED:
            audit = client.audit.audit(task)
            seats = client.audit.seats(task)
            if audit.pending:
                self._skip(client, client.deployment.beacon.time_of(audit.round) - now)
            elif seats and all(seat.attested for seat in seats):
                self._skip(client, view.challenge_until + 1 - now)

    def _skip(self, client: Client, seconds: int) -> None:
        if seconds > 0:
            client.connection.request("evm_increaseTime", hex(seconds), attempts=1)
            client.connection.request("anvil_mine", hex(1), attempts=1)
