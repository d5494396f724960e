"""What may go wrong between a node of a chain and those who ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Garbage = Literal["no JSON", "no object", "another id", "no hex", "cut short", "huge", "trickling"]
GARBAGE: Final[tuple[Garbage, ...]] = get_args(Garbage)


@dataclass
class Faults:
    """What goes wrong. All of it may be changed at any time; shares are probabilities of one request."""

    down: bool = False
    """No answer: the connection is closed."""
    drop_share: float = 0.0
    """Like `down`, for some requests."""
    error: str | None = None
    """Every read is answered with this error."""
    status: int | None = None
    """Every request is answered by this status of HTTP: 429 is "too many requests"."""
    delay: float = 0.0
    """Seconds before each answer."""
    stale_share: float = 0.0
    """Reads that are answered by a node that is `stale_blocks` behind."""
    stale_blocks: int = 2
    lose_broadcasts: bool = False
    """Transactions are acknowledged and thrown away."""
    refuse_broadcasts: str | None = None
    """Transactions are refused with this error."""
    chain_id: int | None = None
    """Another chain id than the node's."""
    batches: bool = True
    """Whether several questions in one request are answered."""
    logs_range: int | None = None
    """Blocks that may be asked for at once; more are refused."""
    garbage: Garbage | None = None
    """Bodies that are not an answer: a page of HTML; JSON that is not an object; the answer to the question before; a
    result of another form; half of the answer and an end; a body without an end; a byte each `pause` seconds. What
    was asked has been done.
    """
    garbage_share: float = 1.0
    """Requests that `garbage` is for."""
    garbage_method: str | None = None
    """The only method that it is for."""
    pause: float = 1.0
