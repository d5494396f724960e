"""The faults of a chain's node and of the connection to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Garbage = Literal["no JSON", "no object", "another id", "no hex", "cut short", "huge", "trickling"]
GARBAGE: Final[tuple[Garbage, ...]] = get_args(Garbage)


@dataclass
class Faults:
    """What goes wrong now. Fields may be changed at any time. Each share is a probability per call, except
    `garbage_share`, which is a probability per request.
    """

    down: bool = False
    """No call is answered: the connection is closed instead."""
    drop_share: float = 0.0
    """Share of the calls that get no answer, as with `down`."""
    error: str | None = None
    """Every call except a broadcast is answered with this error."""
    status: int | None = None
    """Every request is answered with this HTTP status: 429 is "too many requests"."""
    delay: float = 0.0
    """Seconds of delay before each call is answered."""
    stale_share: float = 0.0
    """Share of the reads that get an outdated answer: the answer of a node that is `stale_blocks` blocks behind."""
    stale_blocks: int = 2
    lose_broadcasts: bool = False
    """Transactions are acknowledged but dropped."""
    refuse_broadcasts: str | None = None
    """Transactions are refused with this error."""
    fail_broadcasts: str | None = None
    """Transactions are passed on, but answered with this error."""
    chain_id: int | None = None
    """The chain id with which `eth_chainId` is answered; None for the node's."""
    batches: bool = True
    """Whether batch requests are answered."""
    logs_range: int | None = None
    """The maximum number of blocks in one request for logs; longer ranges are refused."""
    no_logs: bool = False
    """Every request for logs is answered with an empty list, as by a node that has not indexed its newest blocks."""
    garbage: Garbage | None = None
    """How the body of a reply is wrong; None if it is right. The request itself is carried out. The values of
    `GARBAGE` mean, in order: the body is an HTML page; it is JSON, but not an object; it is the reply to the
    connection's previous request; its result has another form; it is only half of the reply; it never ends;
    it is the right reply, but is sent at one byte every `pause` seconds.
    """
    garbage_share: float = 1.0
    """The share of requests that `garbage` applies to, among those with the method `garbage_method`."""
    garbage_method: str | None = None
    """The only method to whose calls `garbage` applies; None for all."""
    pause: float = 1.0
