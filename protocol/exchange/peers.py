"""Fetches announcements and tensors from any place that has them: their lane, other lanes, mirrors.

Everything is checked: an announcement must be signed by its lane, and a tensor must have its root. The lane's
own addresses are asked first, then the other places, fast ones before slow ones. A place that sends anything
wrong, or does not answer in time, is asked after all others until it gives a good answer. A place that does
not have a file yet keeps its rank and is asked again.

While an announcement is awaited, each place is asked independently of the others, so a silent one delays
nothing. A tensor of an announced state exists already and has many bytes, so the places are asked for it one
after another. All questions to a place share one connection, because a server grants only a few connections
to one address.

A lane may sign two different states of one round and show them to different lanes. This comes to light when
the fetching lane asks places again for an announcement that it already has. It does so while the
announcement's tensors are missing, and when `compare` is called.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

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
"""A pause lasts this share of the time waited so far, but at least `FIRST_PAUSE` and at most `LONGEST_PAUSE`.
So a long wait takes few requests, and the last pause adds little to the wait.
"""
ALL_TURNS: Final = 4
"""Every fourth turn asks all places. The other turns ask only the best place, to spare slow lanes."""
HEAD_START: Final = 1.0
"""Seconds that the best place has to answer about an announcement before the other places are asked too. If a
place has been silent for this long and another place then delivers the file, the silent place is asked after
the others from then on.
"""
LONG_SECONDS: Final = 10.0
"""Seconds after which a wait for an announced tensor is logged as a warning, once."""
ANNOUNCEMENT_BYTES: Final = 1_000
"""Maximum bytes of an announcement, apart from the roots of its tensors."""

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


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


@dataclass(frozen=True)
class _File(Generic[Found_co]):
    """A file's name, its maximum bytes, and a function that makes the wanted object from its bytes, or raises
    `MessageError`.
    """

    name: str
    most: int
    checked: Callable[[bytes], Found_co]


class _Clients(AsyncExitStack):
    """One HTTP client per place. A client runs one request at a time. It connects only to IP addresses that
    the operator's rules allow for its place (`Reach.permit`).
    """

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach
        self._clients: dict[Address, HttpClient] = {}
        self._locks: dict[Address, asyncio.Lock] = {}

    @asynccontextmanager
    async def of(self, place: Address) -> AsyncIterator[HttpClient]:
        """The client of a place, once it has no other request. Raises `OutOfReach` for a place that the operator
        does not permit.
        """
        async with self._locks.setdefault(place, asyncio.Lock()):
            if place not in self._clients:
                client = HttpClient(permit=self._reach.permit(place))
                self._clients[place] = await self.enter_async_context(client)
            yield self._clients[place]


@asynccontextmanager
async def _running(
    questions: Iterable[Coroutine[Any, Any, Found]],
) -> AsyncIterator[list[asyncio.Task[Found]]]:
    """Run coroutines as tasks. At the end of the context, those that still run are cancelled and awaited."""
    tasks = [asyncio.create_task(question) for question in questions]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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

        Raises `MessageError` if `require` refuses a correctly signed announcement, or if `emit` cannot have
        produced a signed message. Raises `Equivocation` if a message is missing and its lane has also signed
        another state.
        """
        async with _Clients(self.reach) as clients:
            asked = (self._message(clients, number, lane, require) for lane in lanes)
            async with _running(asked) as tasks:
                return dict(zip(lanes, await asyncio.gather(*tasks), strict=True))

    async def state(self, number: int, lane: int, names: Sequence[str]) -> dict[str, Tensor]:
        """Tensors, by name, of the state that a lane announced after a round; waits until it has them. The
        announcement and the tensors of the lane's message are also kept on the shelf, so a later call of
        `messages` returns the message from this same state.

        Raises `MessageError` and `Equivocation` as `messages` does.
        """
        async with _Clients(self.reach) as clients:
            return await self._found(clients, number, lane, names, lambda _: None)

    async def results(
        self, number: int, lanes: Sequence[int], require: Callable[[Announcement], None]
    ) -> None:
        """Wait until each of `lanes` has announced round `number`, and keep these announcements. The round's
        tensors are not fetched, because nobody needs them. Raises `MessageError` if `require` refuses an
        announcement.
        """
        async with _Clients(self.reach) as clients:
            asked = (self._result(clients, number, lane, require) for lane in lanes)
            async with _running(asked) as tasks:
                await asyncio.gather(*tasks)

    async def compare(self, announcements: Iterable[Announcement]) -> None:
        """Ask every place once for each of these announcements. Raises `Equivocation` if a place has a
        different announcement that the same lane has signed.
        """
        async with _Clients(self.reach) as clients:
            for announcement in announcements:
                await self._compare(clients, announcement)

    async def _message(
        self, clients: _Clients, number: int, lane: int, require: Callable[[Announcement], None]
    ) -> tuple[Tensor, ...]:
        found = await self._found(clients, number, lane, (), require)
        return tuple(found[name] for name in self.job.lanes.message_types)

    async def _found(
        self,
        clients: _Clients,
        number: int,
        lane: int,
        names: Sequence[str],
        require: Callable[[Announcement], None],
    ) -> dict[str, Tensor]:
        """Fetch tensors, by name, of the state that a lane announced after a round: those in `names`, and
        those that make up the lane's message.
        """
        step, of_message = self.job.lanes.inner, [*self.job.lanes.message_types]
        types = dict(zip(step.state, step.state_types, strict=True))
        what = f"message of lane {lane} in round {number}"
        announcement = await self._announcement(clients, number, lane)
        require(announcement)
        roots = dict(zip(step.state, announcement.roots, strict=True))
        found = {
            name: await self._tensor(clients, announcement, types[name], roots[name], name)
            for name in (*names, *of_message)
        }
        require_message(self.job.lanes, [found[name] for name in of_message], what)
        self.shelf.announce(announcement)
        return found

    async def _result(
        self, clients: _Clients, number: int, lane: int, require: Callable[[Announcement], None]
    ) -> None:
        announcement = await self._announcement(clients, number, lane)
        require(announcement)
        self.shelf.announce(announcement)

    async def _compare(self, clients: _Clients, announcement: Announcement) -> None:
        number, lane = announcement.number, announcement.lane
        file = self._file_of(number, lane)
        asked = [self._asked(clients, place, file) for place in self._places(lane)]
        for other in await asyncio.gather(*asked):
            if other is not None and other.state_root != announcement.state_root:
                raise self.shelf.equivocation(announcement, other)

    async def _announcement(self, clients: _Clients, number: int, lane: int) -> Announcement:
        """A lane's announcement of a round; waits until a place has it. The best place is asked first."""
        kept = self.shelf.announced(number, lane)
        if kept is not None:
            return kept
        file, answered = self._file_of(number, lane), asyncio.Event()
        places = self._places(lane)
        asked = (self._polled(clients, place, lane, file, answered, k == 0) for k, place in enumerate(places))
        async with _running(asked) as tasks:
            if not tasks:
                await asyncio.Event().wait()  # no place is known, so the lane waits until it is stopped
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()

    async def _polled(
        self,
        clients: _Clients,
        place: Address,
        lane: int,
        file: _File[Found],
        answered: asyncio.Event,
        first: bool,
    ) -> Found:
        """Ask a place again and again until it has a file.

        One of the concurrent calls is made with `first`, and its place gets a head start: the other calls
        wait until `answered` is set, but at most `HEAD_START` seconds. The call with `first` sets `answered`
        as soon as it has asked its place once and has not got the file.
        """
        if not first:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEAD_START):
                    await answered.wait()
        began, turn = time.monotonic(), 0
        while True:
            if turn % ALL_TURNS == 0 or place == self._places(lane)[0]:
                found = await self._asked(clients, place, file)
                if found is not None:
                    return found
                if first:
                    answered.set()
            await asyncio.sleep(_pause(time.monotonic() - began))
            turn += 1

    def _file_of(self, number: int, lane: int) -> _File[Announcement]:
        """The file of a lane's announcement of a round."""

        def checked(data: bytes) -> Announcement:
            announcement = Announcement.parse(data)
            announcement.require(self.job, self.members, number, lane)
            return announcement

        most = ANNOUNCEMENT_BYTES + 80 * len(self.job.lanes.inner.state)
        return _File(announcement_name(number, lane), most, checked)

    async def _tensor(
        self, clients: _Clients, announcement: Announcement, type_: TensorType, root: bytes, name: str
    ) -> Tensor:
        lane, number = announcement.lane, announcement.number
        what = f"{name} of lane {lane} in round {number}"
        kept = self.shelf.tensor(root)
        if kept is None:

            def checked(data: bytes) -> bytes:
                tensor_of(data, type_, root, what)
                return data

            file = _File(tensor_name(root), type_.nbytes, checked)
            kept = await self._fetched(clients, announcement, file)
            self.shelf.put(root, kept)
        return tensor_of(kept, type_, root, what).to(self.job.device)

    async def _fetched(self, clients: _Clients, announced: Announcement, file: _File[Found]) -> Found:
        """Fetch a tensor from the first place that has it. `announced` is the announcement that contains the
        tensor's root.

        While no place has the tensor, the places are also asked for that announcement, because its lane may
        have signed another state for other lanes.
        """
        lane = announced.lane
        began, turn, said = time.monotonic(), 0, False
        while True:
            places, asks_all = self._places(lane), turn % ALL_TURNS == 0
            for place in places if asks_all else places[:1]:
                found = await self._asked(clients, place, file)
                if found is not None:
                    return found
            waited = time.monotonic() - began
            if asks_all:
                await self._compare(clients, announced)
                if waited > LONG_SECONDS and not said:
                    said = True
                    _log.warning(
                        "no place has an announced tensor", lane=lane, round=announced.number, file=file.name
                    )
            await asyncio.sleep(_pause(waited))
            turn += 1

    def _places(self, lane: int) -> list[Address]:
        """Places that may have a lane's files, sorted by failures; among equals, the lane's own addresses
        come first, then the faster places.
        """
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

    async def _asked(self, clients: _Clients, place: Address, file: _File[Found]) -> Found | None:
        data = bytearray()
        standing, began = self._of(place), math.inf
        try:
            async with clients.of(place) as client:
                began = time.monotonic()
                async with asyncio.timeout(ANSWER_SECONDS + file.most / LEAST_RATE):
                    await client.get(place / file.name, file.most, data)
            found = file.checked(bytes(data))
        except NotServed as error:
            if error.status != 404:
                self._failed(place, file.name, error)
            return None
        except (BadAnswer, OutOfReach, MessageError, TimeoutError) as error:
            self._failed(place, file.name, error)
            return None
        except asyncio.CancelledError:  # another place has answered, or the lane stops
            if time.monotonic() - began >= HEAD_START:
                self._failed(place, file.name, TimeoutError())
            raise
        standing.failures = 0
        standing.bytes += len(data)
        standing.seconds += time.monotonic() - began
        return found

    def _failed(self, place: Address, name: str, error: Exception) -> None:
        standing = self._of(place)
        standing.failures += 1
        say = _log.warning if standing.failures == 1 else _log.debug
        say("a place is asked after all others", place=str(place), file=name, why=str(error) or "too slow")


def _pause(waited: float) -> float:
    """Seconds until a place is asked again, after `waited` seconds."""
    return min(max(FIRST_PAUSE, PAUSED * waited), LONGEST_PAUSE)
