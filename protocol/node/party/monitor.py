"""The monitoring of a running node: its listener, and a thread that checks its state and posts alerts.

The thread never delays the loop: it reads only the disk and what the loop has noted, and asks the chain
nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep, time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from prometheus_client import CollectorRegistry, generate_latest

from protocol.chain.client import Client
from protocol.node.database import DatabaseError, Identity
from protocol.node.disk import room
from protocol.node.monitoring.alerts import Alarm, Alerts
from protocol.node.monitoring.listener import application
from protocol.node.monitoring.outbox import Outbox, open_outbox
from protocol.node.monitoring.posting import FIRST_REST, Poster
from protocol.node.monitoring.webhook import Webhook
from protocol.node.party.collector import CHECKS, Known, NodeCollector
from protocol.node.party.settings import NodeSettings
from protocol.node.serving import Serving

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LOOK_SECONDS: Final = 1.0
"""Seconds between two checks by the thread."""
POST_SECONDS: Final = 10.0
"""Seconds after a check during which the thread may start to post further alerts. A post that has begun
may end later.
"""
REST_SECONDS: Final = 0.05
WRITE_SECONDS: Final = 10.0
"""Minimum seconds between two test writes to the database, no matter how often readiness is checked."""
BLOCK_SECONDS: Final = 600.0
"""Age of the newest block, in seconds, above which the chain or its node counts as stalled."""
GIB: Final = 1 << 30


class Monitor:
    """Monitors a node as long as the context lasts. `party` is "solver" or "verifier"; `folder` has the
    node's data. `writable` is a function that writes to the node's database as a test, and raises
    sqlite3.Error if this fails. `needs` is False for a node without an account, which needs no tokens and no
    coin.

    Raises PortTaken, PortRefused, NoSuchHost. Entering the context may raise NotStarted.
    """

    def __init__(
        self,
        party: str,
        settings: NodeSettings,
        client: Client,
        folder: Path,
        known: Known,
        log: FilteringBoundLogger,
        registry: CollectorRegistry,
        writable: Callable[[], None] = lambda: None,
        needs: bool = True,
        rest: float = FIRST_REST,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._log = log
        self._writable = writable
        self._needs = needs
        self._known = known
        self._firing: dict[Alarm, str] = {}
        self._write_lock = Lock()
        self._written: tuple[float, str] | None = None
        chain, account = client.connection.chain_id, client.address if needs else ""
        self._outbox = self._open(Identity(client.connection.genesis, client.market.address, client.address))
        about = {"node": party, "chain": chain, "account": account or None}
        self.alerts = Alerts(log, registry, about, self._outbox, settings.webhook is not None)
        self._poster: Poster | None = None
        if settings.webhook is not None:
            webhook = Webhook.parse(settings.webhook.get_secret_value())
            self._poster = Poster(self.alerts, webhook, log, registry, rest)
        labels = {"node": party, "chain": str(chain), "account": account}
        NodeCollector(known, folder, self.checks, labels).register(registry)
        app = application(self.is_alive, self.checks, lambda: generate_latest(registry))
        try:
            self._serving = Serving(
                app, settings.monitor_host, settings.monitor_port_bound, flag="--monitor-port"
            )
        except BaseException:
            self.alerts.close()
            raise
        self._ending = Event()
        self._thread = Thread(target=self._run, name="monitor", daemon=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self._serving)
        except BaseException:
            self.alerts.close()
            raise
        self._log.info("monitoring", url=self._serving.url)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self.alerts.close()
        self._stack.close()

    @property
    def url(self) -> str:
        """The URL of the listener."""
        return self._serving.url

    def is_alive(self) -> bool:
        """Whether the node's loop turns within its time limit."""
        return self._known.pulse.is_alive(monotonic())

    def checks(self) -> Mapping[str, str]:
        """For each check of readiness, by the check's name: the problem that it finds, in words, or an empty
        text if it finds none.
        """
        found = self._chain(), self._database(), self._disk(), self._account()
        return dict(zip(CHECKS, found, strict=True))

    def _chain(self) -> str:
        pulse, now = self._known.pulse, monotonic()
        if pulse.answered is None:
            return "the chain has not answered yet"
        if pulse.rpc_age(now) > pulse.rpc_limit:
            return f"the chain has not answered for {pulse.rpc_age(now):.0f} s"
        age = time() - pulse.block_time
        return f"the newest block is {age:.0f} s old" if age > BLOCK_SECONDS else ""

    def _database(self) -> str:
        with self._write_lock:
            now = monotonic()
            if self._written is None or now - self._written[0] > WRITE_SECONDS:
                try:
                    self._writable()
                    self._written = now, ""
                except (sqlite3.Error, OSError) as error:
                    self._written = now, f"the database cannot be written: {error}"
            return self._written[1]

    def _disk(self) -> str:
        try:
            left = room(self._folder, int(self._settings.low_disk_gib * GIB))
        except OSError as error:
            return f"the disk cannot be read: {error.strerror}"
        return "" if left >= 0 else f"{-left / GIB:.2f} GiB less are free than are to be kept"

    def _account(self) -> str:
        if not self._needs:
            return ""
        return "not known yet" if self._known.lacks is None else self._known.lacks

    def _run(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(LOOK_SECONDS)
            try:
                self._look()
                self._post(ending)
            except Exception as error:
                # Catch every error: the node must go on, even if alerts are lost.
                self._log.error("monitoring failed", error=f"{type(error).__name__}: {error}", exc_info=error)

    def _post(self, ending: bool) -> None:
        """Post waiting alerts. When the node ends, failed posts are retried for a while, with pauses; the
        next process posts the rest.
        """
        if self._poster is None:
            return
        until = monotonic() + POST_SECONDS
        while monotonic() < until:
            if self._poster.post():
                continue
            if not (ending and self.alerts.count_waiting(0)):
                return
            sleep(REST_SECONDS)

    def _look(self) -> None:
        known, now = self._known, monotonic()
        pulse = known.pulse
        stale = pulse.rpc_age(now) > pulse.rpc_limit
        self._condition(
            Alarm.STALLED, "" if pulse.is_alive(now) else f"no turn for {pulse.loop_age(now):.0f} s"
        )
        self._condition(Alarm.RPC_STALE, f"no answer for {pulse.rpc_age(now):.0f} s" if stale else "")
        self._condition(Alarm.DISK_LOW, self._disk())
        self._condition(Alarm.ACCOUNT, (known.lacks or "") if self._needs else "")
        before = self._settings.deadline_minutes * 60
        at = pulse.chain_time(now)
        for due in known.deadlines if at else ():
            if due.is_near(at, before):
                text = f"{due.kind}: {due.at - at:.0f} s left"
                self.alerts.tell(Alarm.DEADLINE, text, due.market, due.task, f"{due.kind} {due.at:.0f}")

    def _condition(self, alarm: Alarm, text: str) -> None:
        """Raise an alert when a condition begins to hold. While the condition lasts, no further alert is
        raised. `text` is empty if the condition does not hold.
        """
        if not text:
            self._firing.pop(alarm, None)
        elif alarm not in self._firing:
            self._firing[alarm] = text
            self.alerts.tell(alarm, text)

    def _open(self, identity: Identity) -> Outbox | None:
        """Open the outbox for alerts; None if there is no webhook or it cannot be opened."""
        if self._settings.webhook is None:
            return None
        try:
            outbox, damaged = open_outbox(self._folder / "alerts.sqlite", identity)
        except DatabaseError as error:
            self._log.error("alerts are kept in memory alone", error=str(error))
            return None
        if damaged is not None:
            self._log.error("the file of alerts was damaged: a new one is begun", kept=str(damaged))
        return outbox
