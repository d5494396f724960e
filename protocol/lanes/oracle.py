"""Runs a whole job in one process. A network of lanes with the same membership table must give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.lanes.errors import MembershipError
from protocol.lanes.membership import Membership, Part
from protocol.lanes.splitting import Inbox, Lanes
from protocol.program.step import State


@dataclass(frozen=True)
class Round:
    """A trained round: the lanes' states (None for a lane that was away), and the inbox of the next round."""

    number: int
    states: tuple[State | None, ...]
    inbox: Inbox


Sent = Callable[[int, int, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""Maps a sent message to the message that arrives. Arguments: round, lane, message."""


def _as_sent(_round: int, _lane: int, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return message


class Job:
    """A job's lanes, a seed for each, and the membership table. Raises `MembershipError` if they do not fit
    together.

    `sent` may change messages on their way, for studies of cheating.
    """

    def __init__(
        self, lanes: Lanes, seeds: Sequence[int], membership: Membership, sent: Sent = _as_sent
    ) -> None:
        for what, count in (("seeds", len(seeds)), ("lanes in the membership table", membership.width)):
            if count != lanes.width:
                raise MembershipError("job", expected=f"{lanes.width} {what}", got=str(count))
        if len(set(seeds)) != len(seeds):
            raise MembershipError(
                "job",
                expected="a seed for each lane",
                got="one twice",
                remedy="take `seeds(seed, width)`",
            )
        self._lanes, self._seeds, self._membership, self._sent = lanes, seeds, membership, sent
        self._interpreter = lanes.interpreter()

    def rounds(self) -> Iterator[Round]:
        """Train the rounds one after another and yield each."""
        lanes = self._lanes
        everybody = range(lanes.width)
        nothing = lanes.nothing()
        inbox: Inbox = [nothing] * lanes.width
        states: list[State | None] = [lanes.initial_state(self._seeds[w], w) for w in everybody]
        for number, row in enumerate(self._membership.rows):
            before = list(states)
            for w in everybody:
                if row[w] is Part.AWAY:
                    states[w] = None
                    continue
                if self._membership.joins(number, w):
                    member = before[self._membership.member(number - 1)]
                    assert member is not None, "it has trained the round before"
                    before[w] = lanes.joined(member, self._seeds[w], w)
                state = before[w]
                assert state is not None, "a lane that is there has a state"
                states[w] = lanes.train(state, inbox, self._interpreter)
            inbox = [
                self._sent(number, w, lanes.message(state))
                if state is not None and row[w] is Part.COUNTS
                else nothing
                for w, state in enumerate(states)
            ]
            yield Round(number, tuple(states), inbox)

    def result(self, last: Round) -> dict[str, Tensor]:
        """The job's result: the state of the first lane that trained in the last round, with that round's
        messages absorbed. A single lane without messages absorbs nothing.
        """
        state = next(state for state in last.states if state is not None)
        return (
            dict(state)
            if self._lanes.block is None
            else self._lanes.absorbed(state, last.inbox, self._interpreter)
        )
