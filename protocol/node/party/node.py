"""The loop of a long-running node. It looks at the chain again and again, until the node's work is over or
the node is asked to stop.

The party decides what happens in each look and when the work is over. This module decides how a node waits,
and how long it tolerates a chain that does not answer.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from protocol.chain.client import Client
from protocol.chain.errors import (
    ChainError,
    NonceTaken,
    NotMined,
    Reverted,
    RpcError,
    UnstableChain,
    WrongChain,
)
from protocol.errors import ExitCode
from protocol.node.monitoring.alerts import Alerts
from protocol.node.party.balances import Balance, Bound, read
from protocol.node.party.collector import Known
from protocol.node.party.monitor import Monitor
from protocol.node.party.settings import LONGEST, NodeSettings
from protocol.node.stopping import Stop

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from structlog.typing import FilteringBoundLogger

    from protocol.chain.blocks import Block

MEASURE_SECONDS: Final = 30.0
"""Seconds between two looks at balances while there is work."""
IDLE_SECONDS: Final = 600.0
"""Seconds between two looks at balances while there is no work: somebody may have sent coin meanwhile."""

AWAY: tuple[type[ChainError], ...] = (RpcError, NotMined, NonceTaken, UnstableChain, Reverted, WrongChain)
"""Errors after which the loop tries again: the chain is out of reach for a while, or its nodes lag. If one of
the chain's nodes is a block behind, it does not yet have what another has already shown, such as a nonce or a
task. Calls may then revert. A wrong chain at the address may be corrected.
"""

SAY_AGAIN: Final = 30.0
"""Seconds after which the same failure is logged again."""


class Node(ABC):
    """A long-running node. Calls `_tick` until there is an outcome, or until it is asked to stop and nothing
    is urgent.
    """

    def __init__(
        self,
        settings: NodeSettings,
        log: FilteringBoundLogger,
        stop: Stop | None,
        client: Client | None = None,
        earlier: Sequence[Node] = (),
    ) -> None:
        self._client = client
        self._nodes: Sequence[Node] = (*earlier, self)
        """The nodes of earlier deployments, and this node, which drives them. Work begun in earlier
        deployments comes before new work.
        """
        self._prepared = False
        self.known = Known()
        self.alerts: Alerts | None = None
        """The monitor's alerts; None if the node is not monitored."""
        self.monitoring_url = ""
        self._measured: float | None = None
        self._idle_measured = False
        self._settings = settings
        self._log = log
        self._stop = stop or Stop()

    @abstractmethod
    def _prepare(self) -> None:
        """Do the work before the first look. If the chain is away meanwhile, this is called again. Raises
        what `_tick` raises.
        """

    @abstractmethod
    def _tick(self) -> None:
        """Look at everything once, without waiting for a block. Raises ChainError."""

    @abstractmethod
    def _outcome(self, once: bool) -> ExitCode | None:
        """The exit code if the node ends now, otherwise None. With `once`, the node ends when its work is
        done. Without `once`, it ends only in special cases, such as after a slash.
        """

    @abstractmethod
    def _at_stake(self) -> dict[str, object]:
        """Work that stays open if the node stops now, as fields for the log."""

    def _may_stop(self) -> bool:
        """Whether everything that is due can wait until the next start."""
        return True

    def _is_idle(self) -> bool:
        """Whether the node has nothing to do before the chain changes."""
        return False

    def _bound(self) -> Mapping[str, Bound]:
        """For each of the node's accounts, by address: which part of its tokens is bound. Called inside a
        view. Raises ChainError.
        """
        return {}

    def _lacks(self, _balances: Mapping[str, Balance], _block: Block) -> str:
        """What the accounts need and lack, in words; empty if nothing. Called inside a view. Raises
        ChainError.
        """
        return ""

    def _try_writing(self) -> object:
        """Write to the database as a test. Raises sqlite3.Error."""
        return None

    @contextmanager
    def _monitored(self, party: str, folder: Path, registry: CollectorRegistry) -> Iterator[None]:
        """Serve health and metrics, and raise alerts, as long as the context lasts. `folder` has the node's
        data. Raises PortTaken, PortRefused, NoSuchHost, NotStarted.
        """
        assert self._client is not None, "who is monitored has one"
        about = party, self._settings, self._client, folder, self.known, self._log, registry
        with Monitor(*about, self._try_writing_all, needs=self._client.sender is not None) as monitor:
            self.monitoring_url = monitor.url
            for node in self._nodes:
                node.alerts, node.known = monitor.alerts, self.known
            yield

    def _try_writing_all(self) -> None:
        for node in self._nodes:
            node._try_writing()

    def _loop(self, once: bool) -> ExitCode:
        """Run until the node ends. Raises the error of a tick if it is permanent or has lasted too long."""
        failing: float | None = None
        told, told_at = "", 0.0
        followed = False
        while True:
            away = [error for node in self._nodes if (error := node._advance()) is not None]
            if not away:
                failing, told = None, ""
                self._note_answer()
                if not followed and self._client is not None:
                    followed = True
                    self._log.info("following", block=self._client.connection.newest)
            else:
                now = time.monotonic()
                # Counted from the first failure and not from the last success: a tick may take hours.
                failing = now if failing is None else failing
                if now - failing > self._settings.patience:
                    raise away[0]
                if str(away[0]) != told or now - told_at > SAY_AGAIN:
                    told, told_at = str(away[0]), now
                    self._log.warning("waiting for the chain", error=told)
            code = self._outcome(once)
            if code is not None:
                return code
            if self._stop.asked and all(node._may_stop() for node in self._nodes):
                for node in self._nodes:
                    node._log.warning("stopped", **node._at_stake())
                return ExitCode.INTERRUPTED
            self.known.pulse.turn(time.monotonic(), self._pause())
            self._rest()

    def _advance(self) -> ChainError | None:
        """Prepare if that has not been done before, then tick. Returns the error if the chain is away."""
        try:
            if self._client is not None:
                self._client.tend()
            if not self._prepared:
                self._prepare()
                self._prepared = True
            self._tick()
        except AWAY as error:
            return error
        return None

    def _note_answer(self) -> None:
        """Record that the chain has answered the questions of all nodes, and read balances if that is due."""
        if self._client is None:
            return
        block = self._client.connection.latest
        if block is not None:
            self.known.pulse.answer(time.monotonic(), block.number, block.time)
        if self.alerts is None:
            return
        now, idle = time.monotonic(), all(node._is_idle() for node in self._nodes)
        rest = IDLE_SECONDS if idle and self._idle_measured else MEASURE_SECONDS
        if self._measured is None or now - self._measured >= rest or (idle and not self._idle_measured):
            self._measured, self._idle_measured = now, idle
            try:
                self._measure()
            except AWAY as error:
                self._log.warning("balances not read", error=str(error))

    def _measure(self) -> None:
        """Read the balances of all nodes' accounts."""
        lacks = ""
        for node in self._nodes:
            assert node._client is not None, "who is monitored has one"
            with node._client.connection.view() as block:
                bound = node._bound()
                found = read(node._client, bound) if bound else {}
                if node is self:
                    lacks = node._lacks(found, block)
                else:  # count the tokens outside the vault only once
                    found = {account: replace(one, wallet=0) for account, one in found.items()}
            market = node._client.market.address
            mine = {(market, account): one for account, one in found.items()}
            self.known.balances = {**self.known.balances, **mine}
        self.known.lacks = lacks

    def _rest(self) -> None:
        """Wait for the next look. If the node was asked to stop but must still act, sleep for the settings'
        `pace`, because waiting for a request to stop would end at once.
        """
        if self._stop.asked:
            time.sleep(self._settings.pace)
        else:
            self._stop.wait(self._pause())

    def _pause(self) -> float:
        """Seconds until the next look. If the settings do not set this, it is a block time (at most
        `LONGEST`) while all nodes are idle, and otherwise half a second.
        """
        pace = self._settings.pace
        idle = all(node._is_idle() for node in self._nodes)
        if self._settings.poll is not None or self._client is None or not idle:
            return pace
        try:
            return min(LONGEST, max(pace, self._client.connection.block_time))
        except AWAY:  # the block time must be measured, and the chain is away
            return pace
