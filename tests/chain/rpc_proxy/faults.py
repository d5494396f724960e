"""What may go wrong between a chain's node and its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Garbage = Literal["no JSON", "no object", "another id", "no hex", "cut short", "huge", "trickling"]
GARBAGE: Final[tuple[Garbage, ...]] = get_args(Garbage)


@dataclass
class Faults:
    """What goes wrong. Fields may be changed at any time; shares are probabilities per request."""

    down: bool = False
    """No answer: the connection is closed."""
    drop_share: float = 0.0
    """Share of the requests that get no answer, as with `down`."""
    error: str | None = None
    """Every read is answered with this error."""
    status: int | None = None
    """Every request is answered with this HTTP status: 429 is "too many requests"."""
    delay: float = 0.0
    """Seconds before each answer."""
    stale_share: float = 0.0
    """Share of the reads that are answered as by a node that is `stale_blocks` behind."""
    stale_blocks: int = 2
    lose_broadcasts: bool = False
    """Transactions are acknowledged and dropped."""
    refuse_broadcasts: str | None = None
    """Transactions are refused with this error."""
    chain_id: int | None = None
    """The chain id that is answered instead of the node's."""
    batches: bool = True
    """Whether batch requests are answered."""
    logs_range: int | None = None
    """The maximum number of blocks in one request for logs; longer ranges are refused."""
    garbage: Garbage | None = None
    """Bodies that are not the answer, in the order of `GARBAGE`: an HTML page; JSON that is not an object;
    the answer to the previous question; a result of another form; half of the answer; a body without an end;
    a byte every `pause` seconds. The request itself is carried out.
    """
    garbage_share: float = 1.0
    """Share of the requests that `garbage` applies to."""
    garbage_method: str | None = None
    """The only method that `garbage` applies to; None for all."""
    pause: float = 1.0
