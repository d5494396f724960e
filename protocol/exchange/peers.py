"""Fetches announcements and tensors from any place that has them: their lane, other lanes, mirrors.

Everything is checked: an announcement must be signed by its lane, a tensor must have its root. A place that
sends anything else, or does not answer in time, is asked after the others until it gives a good answer.
Otherwise the lane's own addresses are asked first, then the other places, fast ones before slow ones. A
place that does not have a file yet keeps its rank and is asked again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, TypeVar

from torch import Tensor

from protocol.exchange.announcements import Announcement
from protocol.exchange.errors import MessageError
from protocol.exchange.jobs import LaneJob
from protocol.exchange.members import Members
from protocol.exchange.messages import require_message, tensor_of
from protocol.exchange.shelf import Shelf, announcement_name, tensor_name
from protocol.node import logs
from protocol.node.addresses import Address
from protocol.node.http_client import BadAnswer, HttpClient, NotServed
from protocol.node.reach import OutOfReach, Reach
from protocol.program.types import TensorType

_log = logs.get("lane.peers")

ANSWER_SECONDS: Final = 10.0
"""Seconds for a place to answer, in addition to the time that LEAST_RATE allows for the bytes."""
LEAST_RATE: Final = 1 << 16
"""Minimum bytes per second. A slower place is abandoned for another."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""The shortest and longest pause, in seconds, before places that did not have a file are asked again."""
PAUSED: Final = 0.1
"""The pause as a share of the time waited so far. It bounds the relative delay and spares requests."""
ALL_TURNS: Final = 4
"""Every fourth turn asks all places. The other turns ask only the best place, to spare slow lanes."""
ANNOUNCEMENT_BYTES: Final = 1_000
"""Maximum bytes of an announcement, apart from the roots of its tensors."""

Found = TypeVar("Found")


@dataclass
class _Standing:
    """A place's record: failures since its last good answer; bytes and seconds of all good answers."""

    failures: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def slowness(self) -> float:
        """Seconds per byte; 0 for a place that has sent nothing yet."""
        return self.seconds / self.bytes if self.bytes else 0.0


class _Clients(AsyncExitStack):
    """One HTTP client per place. Each has its own permit, which limits the IP addresses that it connects
    to.
    """

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach
        self._clients: dict[Address, HttpClient] = {}

    async def of(self, place: Address) -> HttpClient:
        """The client of a place. Raises `OutOfReach` for a place that the operator does not permit."""
        if place not in self._clients:
            client = HttpClient(permit=self._reach.permit(place))
            self._clients[place] = await self.enter_async_context(client)
        return self._clients[place]


@dataclass
class Peers:
    """Fetches files for lane `lane` of a job and puts them on its shelf. Used by one event loop at a time."""

    job: LaneJob
    members: Members
    lane: int
    shelf: Shelf
    reach: Reach = field(default_factory=Reach)
    _standing: dict[Address, _Standing] = field(default_factory=dict)

    async def messages(
        self, number: int, lanes: list[int], require: Callable[[Announcement], None]
    ) -> Mapping[int, tuple[Tensor, ...]]:
        """The messages that `lanes` announced after a round; waits until it has all of them.

        Raises `MessageError` if `require` refuses a correctly signed announcement, or if `emit` cannot have produced a
        signed message.
        """
        found = await asyncio.gather(*(self._message(number, lane, require) for lane in lanes))
        return dict(zip(lanes, found, strict=True))

    async def state(self, number: int, lane: int, names: tuple[str, ...]) -> dict[str, Tensor]:
        """Tensors, by name, of the state that a lane announced after a round; waits until it has them."""
        async with _Clients(self.reach) as clients:
            announcement = await self._announcement(clients, number, lane)
            step = self.job.lanes.inner
            types = dict(zip(step.state, step.state_types, strict=True))
            roots = dict(zip(step.state, announcement.roots, strict=True))
            return {
                name: await self._tensor(clients, lane, types[name], roots[name], f"{name} of lane {lane}")
                for name in names
            }

    async def _message(
        self, number: int, lane: int, require: Callable[[Announcement], None]
    ) -> tuple[Tensor, ...]:
        async with _Clients(self.reach) as clients:
            announcement = await self._announcement(clients, number, lane)
            require(announcement)
            types = self.job.lanes.message_types
            roots = announcement.roots[-len(types) :]
            what = f"message of lane {lane} in round {number}"
            message = tuple(
                [
                    await self._tensor(clients, lane, type_, root, f"{name} of the {what}")
                    for (name, type_), root in zip(types.items(), roots, strict=True)
                ]
            )
        require_message(self.job.lanes, message, what)
        self.shelf.announce(announcement)
        return message

    async def _announcement(self, clients: _Clients, number: int, lane: int) -> Announcement:
        kept = self.shelf.announced(number, lane)
        if kept is not None:
            return kept

        def checked(data: bytes) -> Announcement:
            announcement = Announcement.parse(data)
            announcement.require(self.job, self.members.accounts, self.members.table, number, lane)
            return announcement

        most = ANNOUNCEMENT_BYTES + 80 * len(self.job.lanes.inner.state)
        return await self._fetched(clients, lane, announcement_name(number, lane), most, checked)

    async def _tensor(
        self, clients: _Clients, lane: int, type_: TensorType, root: bytes, what: str
    ) -> Tensor:
        kept = self.shelf.tensor(root)
        if kept is None:

            def checked(data: bytes) -> bytes:
                tensor_of(data, type_, root, what)
                return data

            kept = await self._fetched(clients, lane, tensor_name(root), type_.nbytes, checked)
            self.shelf.put(root, kept)
        return tensor_of(kept, type_, root, what).to(self.job.device)

    async def _fetched(
        self, clients: _Clients, lane: int, name: str, most: int, checked: Callable[[bytes], Found]
    ) -> Found:
        """Fetch a file from the first place that has it, and return `checked` of its bytes."""
        began, turn = time.monotonic(), 0
        while True:
            places = self._places(lane)
            for place in places if turn % ALL_TURNS == 0 else places[:1]:
                found = await self._asked(clients, place, name, most, checked)
                if found is not None:
                    return found
            waited = time.monotonic() - began
            await asyncio.sleep(min(max(FIRST_PAUSE, PAUSED * waited), LONGEST_PAUSE))
            turn += 1

    def _places(self, lane: int) -> list[Address]:
        """Places that may have a lane's files, sorted by failures, then the lane's own addresses first, then speed."""
        others = [
            url
            for number, urls in enumerate(self.members.urls)
            if number not in (lane, self.lane)
            for url in urls
        ]
        places = dict.fromkeys((*self.members.urls[lane], *self.members.mirrors, *others))
        own = set(self.members.urls[lane])
        return sorted(
            places, key=lambda place: (self._of(place).failures, place not in own, self._of(place).slowness)
        )

    def _of(self, place: Address) -> _Standing:
        return self._standing.setdefault(place, _Standing())

    async def _asked(
        self, clients: _Clients, place: Address, name: str, most: int, checked: Callable[[bytes], Found]
    ) -> Found | None:
        data = bytearray()
        standing, began = self._of(place), time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS + most / LEAST_RATE):
                client = await clients.of(place)
                await client.get(place / name, most, data)
            found = checked(bytes(data))
        except NotServed as error:
            if error.status != 404:
                self._failed(place, name, error)
            return None
        except (BadAnswer, OutOfReach, MessageError, TimeoutError) as error:
            self._failed(place, name, error)
            return None
        standing.failures = 0
        standing.bytes += len(data)
        standing.seconds += time.monotonic() - began
        return found

    def _failed(self, place: Address, name: str, error: Exception) -> None:
        standing = self._of(place)
        standing.failures += 1
        say = _log.warning if standing.failures == 1 else _log.debug
        say("a place is asked after all others", place=str(place), file=name, why=str(error) or "too slow")
