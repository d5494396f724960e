"""Follows a chain's events from any block on, in bounded ranges, and reports re-organisations.

A follower keeps the hashes of the blocks at which it stopped. If some of these blocks are no longer on the
chain, the follower goes back to the last one that is still on the chain, and reports this (`Batch.rewound`).
A caller that has acted on later events must then read the contracts again.

If a lagging node is asked for a range beyond its head, it returns the events that it has, without an error.
So the newest blocks are read one by one and by hash: a node that does not have a block then refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocol.chain.abi import Contract
from protocol.chain.blocks import Block
from protocol.chain.connection import Connection
from protocol.chain.errors import RpcRefused, UnstableChain
from protocol.chain.receipts import Event, Log, decode_logs

SPAN: Final = 2_000
"""Maximum number of blocks in one request: public nodes allow 2,000 to 10,000."""
KEPT: Final = 128
"""Number of remembered stops (block numbers with hashes). A re-organisation deeper than the oldest stop
restarts the follower at its first block.
"""
NEWEST: Final = 8
"""Number of newest blocks that are read by hash. Nodes are assumed to lag less than this."""
_TRIES: Final = 5

Topics = Sequence[bytes | Sequence[bytes] | None]
"""For each position: a topic, a list of alternatives, or None for any topic."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events since the last poll. If `rewound` is a block's number, all events of later blocks that earlier
    polls returned are void. If `rewound` is None, no earlier event is void.
    """

    events: tuple[Event, ...]
    stop: str
    """Hash of the last block that was read; empty if none was."""
    rewound: int | None = None


class Follower:
    """Follows the events of `contracts` (by address), starting with block `first`. It reads only up to
    `confirmations` blocks before the chain's end.
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
        """Events since the last successful poll, up to block `upto` or the newest confirmed one, whichever is
        earlier. Raises UnstableChain, RpcError.
        """
        head = self._connection.block()
        stops = self._stops[: standing(self._connection, self._stops, head)]
        rewound = None
        if len(stops) < len(self._stops):
            rewound = stops[-1][0] if stops else self._first - 1
        newest = head.number - self._confirmations
        end = newest if upto is None else min(upto, newest)
        begin = stops[-1][0] + 1 if stops else self._first
        events: list[Event] = []
        while begin <= end:
            far = min(end, begin + self._span - 1, head.number - NEWEST)
            last, logs, stop = self._read(begin, far) if far >= begin else self._read_one(begin, head)
            events += decode_logs(logs, self._contracts)
            stops.append((last, stop))
            begin = last + 1
        # Set only now: after an error in a later span, the caller does not get the events of earlier ones.
        self._stops = stops[-KEPT:]
        return Batch(tuple(events), stops[-1][1] if stops else "", rewound)

    def _read_one(self, number: int, head: Block) -> tuple[int, list[Log], str]:
        """Logs of one block, requested by its hash."""
        block_hash = _hash(self._connection, number, head)
        return number, self._logs({"blockHash": block_hash}), block_hash

    def _read(self, begin: int, end: int) -> tuple[int, list[Log], str]:
        """Read the logs of blocks `begin` to `end`, or of fewer blocks if the node refuses so many. Returns
        the number of the last block that was read, the logs, and the last block's hash, which was the same
        before and after reading.
        """
        tries = _TRIES
        while tries:
            before = self._connection.block(end).hash
            try:
                logs = self._logs({"fromBlock": hex(begin), "toBlock": hex(end)})
            except RpcRefused:
                # Nodes limit the range or the answer's size, each with another message: ask for less.
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

    def _logs(self, blocks: dict[str, str]) -> list[Log]:
        query: dict[str, Any] = {
            "address": list(self._contracts),
            "topics": [_topic(topic) for topic in self._topics],
        }
        found = self._connection.request("eth_getLogs", query | blocks, refusals="blockHash" in blocks)
        return [Log.read(fields) for fields in found]


def standing(connection: Connection, stops: Sequence[tuple[int, str]], head: Block) -> int:
    """The number of `stops` that are still on the chain that ends in `head`. The stops are blocks, as pairs
    of number and hash in ascending order. The chain may have become shorter. Requests no block if the last
    stop is one of the chain's newest two blocks, with the same hash. Raises RpcError.
    """
    count = len(stops)
    while count and not _is_on(connection, stops[count - 1], head):
        count -= 1
    return count


def _is_on(connection: Connection, stop: tuple[int, str], head: Block) -> bool:
    number, block_hash = stop
    return number <= head.number and _hash(connection, number, head) == block_hash


def _hash(connection: Connection, number: int, head: Block) -> str:
    """The hash of a block that is not above the head. `head` has the hashes of the newest two blocks; other
    hashes are requested.
    """
    if number >= head.number - 1:
        return head.hash if number == head.number else head.parent
    return connection.block(number).hash


def _topic(topic: bytes | Sequence[bytes] | None) -> str | list[str] | None:
    if topic is None:
        return None
    return "0x" + topic.hex() if isinstance(topic, bytes) else ["0x" + one.hex() for one in topic]


def first_block(connection: Connection, low: int, time: int) -> int:
    """Number of the first block from `low` on that is not older than `time` (seconds since 1970); the newest
    block if all are older. Raises ChainError.
    """
    high = connection.block().number
    while low < high:
        middle = (low + high) // 2
        if connection.block(middle).time < time:
            low = middle + 1
        else:
            high = middle
    return low
