"""Following a chain's events: from any block on, in bounded ranges, and honest about re-organisations.

A follower keeps the hashes of the blocks it stopped at. When one of them is no longer the chain's, it goes
back to the last one that is and says so (`Batch.rewound`): whoever has acted on later events reads the
contracts again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocol.chain.abi import Contract
from protocol.chain.connection import Connection
from protocol.chain.errors import RpcRefused, UnstableChain
from protocol.chain.receipts import Event, Log, decode_logs

SPAN: Final = 2_000
"""Blocks asked for at once: public nodes allow 2,000 to 10,000."""
KEPT: Final = 128
"""Stops remembered; re-organisations deeper than the oldest restart the follower at its first block."""
_TRIES: Final = 5

Topics = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """What happened since the last poll. `rewound` is the block after which earlier events are void, None if
    all stand.
    """

    events: tuple[Event, ...]
    upto: int
    rewound: int | None = None


class Follower:
    """Follows the events of `contracts` (by address) from block `first` on, `confirmations` blocks behind the
    chain's end.
    """

    def __init__(
        self,
        connection: Connection,
        contracts: Mapping[str, Contract],
        first: int,
        *,
        topics: Topics = (),
        confirmations: int = 0,
        span: int = SPAN,
    ) -> None:
        self._connection = connection
        self._contracts = dict(contracts)
        self._first = first
        self._topics = topics
        self._confirmations = confirmations
        self._span = span
        self._stops: list[tuple[int, str]] = []

    def poll(self, upto: int | None = None) -> Batch:
        """Events since the last poll, up to block `upto` or the newest confirmed one. Raises UnstableChain,
        RpcError.
        """
        rewound = self._rewind()
        newest = self._connection.block().number - self._confirmations
        end = newest if upto is None else min(upto, newest)
        begin = self._stops[-1][0] + 1 if self._stops else self._first
        events: list[Event] = []
        while begin <= end:
            last, logs, stop = self._read(begin, min(end, begin + self._span - 1))
            events += decode_logs(logs, self._contracts)
            self._stops = [*self._stops, (last, stop)][-KEPT:]
            begin = last + 1
        return Batch(tuple(events), end, rewound)

    def _rewind(self) -> int | None:
        """Forget the stops that a re-organisation took away; the block that still stands, None if nothing
        changed.
        """
        known = len(self._stops)
        while self._stops and not self._stands(*self._stops[-1]):
            self._stops.pop()
        if len(self._stops) == known:
            return None
        return self._stops[-1][0] if self._stops else self._first - 1

    def _stands(self, number: int, block_hash: str) -> bool:
        try:
            return self._connection.block(number).hash == block_hash
        except RpcRefused:  # the chain is shorter than it was
            return False

    def _read(self, begin: int, end: int) -> tuple[int, list[Log], str]:
        """Logs of a range, the range's real end, and the hash of that block: the same before and after."""
        tries = _TRIES
        while tries:
            before = self._connection.block(end).hash
            try:
                logs = self._logs(begin, end)
            except RpcRefused:
                # Nodes limit the range or the answer's size, each with words of its own: ask for less.
                if begin == end:
                    raise
                end = (begin + end) // 2
                continue
            tries -= 1
            if self._connection.block(end).hash == before:
                return end, logs, before
        raise UnstableChain(
            f"events of blocks {begin} to {end}",
            expected=f"an unchanging block within {_TRIES} tries",
            got="another hash each time",
            remedy="follow with more confirmations",
        )

    def _logs(self, begin: int, end: int) -> list[Log]:
        query: dict[str, Any] = {
            "address": list(self._contracts),
            "fromBlock": hex(begin),
            "toBlock": hex(end),
            "topics": [None if topic is None else "0x" + topic.hex() for topic in self._topics],
        }
        return [Log.read(fields) for fields in self._connection.request("eth_getLogs", query)]
