"""A client of the HTTP service of a solver or a juror. It is a `protocol.dispute.provider.Provider` that also
provides checkpoints.

Answers are not trusted and can do no harm. An answer's greatest length is known in advance, and nothing
beyond it is read. Redirects, encodings and addresses outside `Reach` are refused.

An exchange fetches one answer, such as a value or a list of roots, or it fetches a whole checkpoint. A
checkpoint is requested in groups of tensors (`protocol.commitments.groups`), with one answer for each group.
The whole exchange, headers included, has one time limit: `patience` seconds, plus the time that its bytes
take at `LEAST_RATE`, plus `TENSOR_SECONDS` for each tensor of a checkpoint. If a solver is busy (503),
checkpoints and the checkpoint roots are requested again within that limit, because otherwise a seat would
claim that they are unavailable. The groups that have already arrived are kept.

A solver that stays silent or answers badly `TRIES` times in a row is not asked again for a while. Data that
it withholds are demanded on-chain. This module does not compare roots; its callers do.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from protocol.commitments.groups import TENSOR_SECONDS, cut, groups
from protocol.commitments.hashing import HASH_BYTES
from protocol.dispute.provider import Provider
from protocol.node import logs
from protocol.node.addresses import Address
from protocol.node.http_client import LEAST_RATE, BadAnswer, HttpClient, NotServed
from protocol.node.lookups import Permit
from protocol.node.reach import OutOfReach, Reach

if TYPE_CHECKING:
    from protocol.program.program import Program
    from protocol.program.step import StepProgram

TRIES = 2
REST_SECONDS = 60.0
BUSY = 503
BUSY_SECONDS = 1.0
"""Seconds after which a busy solver is asked again. A short pause is enough, because most of the waiting
happens in the solver: if its queue has room, it lets a request wait, by default for up to 30 seconds, before
it answers that it is busy.
"""


class CheckpointProvider(Provider, Protocol):
    """A `Provider` that also provides the states at the ends of segments."""

    def checkpoint(self, number: int) -> Sequence[bytes] | None:
        """Canonical bytes of the tensors of checkpoint `number` (0 … K), each of its expected length."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request for the `due` bytes at the path `where` below the task's address. The time limit allows
    `seconds` in addition to the time that the bytes take.
    """

    where: str
    due: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Shapes:
    """The expected sizes of a task's answers, which follow from its program and terms."""

    program: StepProgram
    segments: int
    segment_steps: int

    def frame(self, path: tuple[int, ...]) -> Program:
        """The program that runs in the frame at `path`, which must be a path that the game uses."""
        program = self.program.program
        for n in path:
            program = program.callee(n)
        return program


class SolverClient:
    """Requests one task's data from one service. Every method returns None if there is no address, or if the
    data do not arrive as expected. Callable from any thread.
    """

    def __init__(
        self,
        address: Address | None,
        task: int,
        shapes: Shapes,
        patience: float,
        reach: Reach,
        longest: float = math.inf,
    ) -> None:
        self._base = None if address is None else address / f"tasks/{task}"
        self._shapes = shapes
        self._reach = reach
        self._patience = patience
        self._longest = longest
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until = 0.0
        self._log = logs.get("verifier.solver_client").bind(task=task)

    def segment_roots(self) -> Sequence[bytes] | None:
        """State roots r_0, r_1, … of the latest commitment, at most K + 1."""
        return self._roots("segments", self._shapes.segments + 1, shorter=True, again=True)

    def step_roots(self, segment: int) -> Sequence[bytes] | None:
        """State roots s_0 … s_C of a segment."""
        return self._roots(f"segments/{segment}/steps", self._shapes.segment_steps + 1)

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes] | None:
        """Tensor roots of a state."""
        return self._roots(f"segments/{segment}/steps/{step}/state", len(self._shapes.program.state))

    def trace_roots(self, segment: int, step: int, path: tuple[int, ...]) -> Sequence[bytes] | None:
        """Value roots of a frame."""
        count = self._shapes.frame(path).trace_leaves
        return self._roots(f"segments/{segment}/steps/{step}/trace", count, path)

    def value(self, segment: int, step: int, path: tuple[int, ...], leaf: int) -> bytes | None:
        """Canonical bytes of a value."""
        due = self._shapes.frame(path).leaf_type(leaf).nbytes
        return self._get(f"segments/{segment}/steps/{step}/values/{leaf}", due, path)

    def checkpoint(self, number: int) -> Sequence[bytes] | None:
        """Canonical bytes of a checkpoint's tensors, if they arrive within `longest` seconds."""
        sizes = [type_.nbytes for type_ in self._shapes.program.state_types]
        of_groups = [[sizes[k] for k in numbers] for numbers in groups(sizes)]
        found = self._ask(
            [
                _Question(f"checkpoints/{number}/groups/{group}", sum(due), len(due) * TENSOR_SECONDS)
                for group, due in enumerate(of_groups)
            ],
            longest=self._longest,
            again=True,
        )
        if found is None:
            return None
        return [tensor for data, due in zip(found, of_groups, strict=True) for tensor in cut(data, due)]

    def _roots(
        self,
        where: str,
        count: int,
        path: tuple[int, ...] = (),
        shorter: bool = False,
        again: bool = False,
    ) -> list[bytes] | None:
        data = self._get(where, count * HASH_BYTES, path, shorter, again)
        if data is None or len(data) % HASH_BYTES:
            return None
        return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]

    def _get(
        self, where: str, due: int, path: tuple[int, ...] = (), shorter: bool = False, again: bool = False
    ) -> bytes | None:
        """An answer of exactly `due` bytes or, with `shorter`, of at most `due` bytes; None if none arrives."""
        found = self._ask([_Question(where, due)], path, shorter, again=again)
        return None if found is None else found[0]

    def _ask(
        self,
        questions: Sequence[_Question],
        path: tuple[int, ...] = (),
        shorter: bool = False,
        longest: float = math.inf,
        again: bool = False,
    ) -> list[bytes] | None:
        """The answers, each of exactly its expected length or, with `shorter`, of at most that length. None
        unless all arrive within one time limit. With `again`, a busy solver is asked again.
        """
        if self._base is None or self._resting():
            return None
        parameters = {"path": ",".join(map(str, path))} if path else {}
        asked = [(self._base / one.where, one) for one in questions]
        started = time.monotonic()
        try:
            permit = self._reach.permit(self._base)
            found = asyncio.run(_fetch(asked, parameters, self._patience, longest, shorter, again, permit))
        except OutOfReach as error:
            self._log.warning("not asked", reason=str(error))
            with self._lock:
                self._rests_until = time.monotonic() + REST_SECONDS
            return None
        except (BadAnswer, TimeoutError) as error:
            self._failed(questions[0].where, error, time.monotonic() - started)
            return None
        with self._lock:
            self._failures = 0
        return found

    def _resting(self) -> bool:
        with self._lock:
            return time.monotonic() < self._rests_until

    def _failed(self, where: str, error: Exception, seconds: float) -> None:
        self._log.info("no answer", question=where, reason=str(error) or type(error).__name__)
        if isinstance(error, NotServed) and seconds < self._patience:
            return
        with self._lock:
            self._failures += 1
            if self._failures >= TRIES:
                # At least as long as it delayed the caller: a slow server cannot take all of its time.
                self._failures, self._rests_until = 0, time.monotonic() + max(REST_SECONDS, seconds)


async def _fetch(
    questions: Sequence[tuple[Address, _Question]],
    parameters: dict[str, str],
    patience: float,
    longest: float,
    shorter: bool,
    again: bool,
    permit: Permit | None,
) -> list[bytes]:
    """The bodies at some addresses, each of exactly the expected length or, with `shorter`, of at most that
    length. With `again`, a busy server is asked again until the time is over.

    All bodies share one time limit, which covers connecting, headers and bodies. It starts at `patience`
    seconds. When a question is asked, the limit grows by the question's `seconds` and by the time that its
    bytes take at `LEAST_RATE`. In any case, everything must arrive within `longest` seconds.
    """
    begun = asyncio.get_running_loop().time()
    end = begun + patience
    found = []
    # A new client each time: connections belong to a loop, and asyncio.run ends its loop.
    async with asyncio.timeout_at(end) as limit, HttpClient(permit=permit) as client:
        for address, one in questions:
            end += one.due / LEAST_RATE + one.seconds
            limit.reschedule(min(end, begun + longest))
            data = await _body(client, address, one.due, parameters, again)
            if len(data) < one.due and not shorter:
                raise BadAnswer(expected=f"{one.due} bytes", got=len(data))
            found.append(bytes(data))
    return found


async def _body(
    client: HttpClient, address: Address, due: int, parameters: dict[str, str], again: bool
) -> bytearray:
    """The body at an address, at most `due` bytes."""
    while True:
        data = bytearray()
        try:
            await client.get(address, due, data, parameters)
        except NotServed as error:
            if not again or error.status != BUSY:
                raise
            await asyncio.sleep(BUSY_SECONDS)
        else:
            return data
