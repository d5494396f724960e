"""A whole job in one process: what a network of lanes gives, bit for bit, for a table of who counts when."""

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
    """A round that is trained: the states of the lanes that were there, and what the next round absorbs."""

    number: int
    states: tuple[State | None, ...]
    inbox: Inbox


Sent = Callable[[int, int, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""What arrives of the message that a lane has sent after a round: round, lane, message."""


def _as_sent(_round: int, _lane: int, message: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return message


class Job:
    """A job of lanes, a seed for each, and the table of its rounds. Raises `MembershipError` where they do not fit.

    With `sent`, messages may arrive otherwise than they were made: for studies of cheats.
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
        """Every round, one after the other."""
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
        """The trained state: the last round's messages in the state of the first lane that trained it."""
        state = next(state for state in last.states if state is not None)
        return (
            dict(state)
            if self._lanes.block is None
            else self._lanes.absorbed(state, last.inbox, self._interpreter)
        )
