"""Metrics of every node. Each time they are read, they are computed from the loop's notes, the disk and the
checks. The chain is not asked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from protocol.chain.parameters import TOKEN
from protocol.node.monitoring.deadlines import Deadlines
from protocol.node.monitoring.pulse import Pulse
from protocol.node.party.balances import Balance
from protocol.node.party.funds import COIN

CHECKS: Final = ("chain", "database", "disk", "account")
"""Names of the checks of readiness."""


@dataclass
class Known:
    """State of a running node for its metrics and checks. The loop writes it."""

    pulse: Pulse = field(default_factory=Pulse)
    deadlines: Deadlines = field(default_factory=Deadlines)
    balances: dict[tuple[str, str], Balance] = field(default_factory=dict)
    """Balances by market and account."""
    lacks: str | None = None
    """What the accounts need and lack, in words; empty if they lack nothing, None before it is known."""


class NodeCollector(Collector):
    """Collects the metrics of a node whose data are in `folder`. `checks` returns the node's problems by
    check.
    """

    def __init__(
        self, known: Known, folder: Path, checks: Callable[[], Mapping[str, str]], about: Mapping[str, str]
    ) -> None:
        self._known = known
        self._folder = folder
        self._checks = checks
        self._about = dict(about)

    def register(self, registry: CollectorRegistry) -> None:
        """Add to a registry these metrics and the metrics of the process: memory, processor time, open files."""
        registry.register(self)
        ProcessCollector(registry=registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Compute all metrics."""
        yield _family("info", "What the node is", list(self._about), [(list(self._about.values()), 1)])
        yield from self._loop()
        yield from self._disk()
        yield _family(
            "ready",
            "Whether a check of readiness finds nothing",
            ["check"],
            [([name], not found) for name, found in self._checks().items()],
        )
        yield _family(
            "deadline_timestamp_seconds",
            "When something is due of the node, by the chain's time",
            ["market", "task", "kind"],
            [([one.market, str(one.task), one.kind], one.at) for one in self._known.deadlines],
        )
        yield from self._money()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yields nothing. Without this method, a registry with `auto_describe` would compute all metrics when
        they are registered.
        """
        return iter(())

    def _loop(self) -> Iterator[GaugeMetricFamily]:
        pulse, now = self._known.pulse, monotonic()
        yield _family("loop_age_seconds", "Since the main loop last turned", (), [((), pulse.loop_age(now))])
        yield _family("loop_limit_seconds", "Age at which it counts as stalled", (), [((), pulse.loop_limit)])
        yield _family(
            "rpc_age_seconds", "Since the chain last answered a whole turn", (), [((), pulse.rpc_age(now))]
        )
        blocks = [((), pulse.block)] if pulse.answered is not None else []
        ages = [((), time() - pulse.block_time)] if pulse.answered is not None else []
        yield _family("block_number", "Of the newest block that was seen", (), blocks)
        yield _family("block_age_seconds", "Since the time that the newest block names", (), ages)

    def _disk(self) -> Iterator[GaugeMetricFamily]:
        try:
            usage = shutil.disk_usage(self._folder)
        except OSError:
            return
        yield _family("disk_free_bytes", "Of the disk with the node's data", (), [((), usage.free)])
        yield _family("disk_size_bytes", "Of the disk with the node's data", (), [((), usage.total)])

    def _money(self) -> Iterator[GaugeMetricFamily]:
        balances = dict(self._known.balances)
        coins = {account: balance.coin / COIN for (_, account), balance in balances.items()}
        yield _family(
            "coins",
            "The chain's coin of an account",
            ["account"],
            [([name], coin) for name, coin in coins.items()],
        )
        tokens = [
            ([market, account, place], units / TOKEN)
            for (market, account), balance in balances.items()
            for place, units in (("wallet", balance.wallet), ("free", balance.free))
        ]
        yield _family("tokens", "Tokens that are not bound, by where", ["market", "account", "place"], tokens)
        locked = [
            ([market, account], balance.locked / TOKEN) for (market, account), balance in balances.items()
        ]
        yield _family(
            "stake_at_risk_tokens", "Tokens locked: stakes, penalties, bonds", ["market", "account"], locked
        )


_Values = list[str] | tuple[()]


def _family(
    name: str, text: str, labels: _Values, samples: Iterable[tuple[_Values, float]]
) -> GaugeMetricFamily:
    made = GaugeMetricFamily(f"assay_node_{name}", text, labels=labels)
    for values, value in samples:
        made.add_metric(values, float(value))
    return made
