"""The parties that serve a task's data: its solver, then the accounts of attested seats.

Their answers are not trusted: a state must have the committed root, and segment roots must give the committed
tree. Parties with fewer failed requests are asked first. After `MOST_FAILURES` failures, or after one failure
that took more than `SLOW_SECONDS`, a party is not asked again.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from torch import Tensor

from assay.errors import NotHeld
from protocol.chain.client import Client
from protocol.chain.views import NOBODY, TaskView
from protocol.commitments import segment_tree, state_root, tensor_root
from protocol.commitments.groups import TENSOR_SECONDS, cut, groups
from protocol.commitments.hashing import HASH_BYTES
from protocol.commitments.tensors import is_canonical
from protocol.node.addresses import Address, BadAddress, parsed
from protocol.node.http_client import LEAST_RATE
from protocol.program.step import StepProgram
from protocol.tasks.bundles import BundleError, BundleMismatch, BundleUnavailable, Limits
from protocol.tasks.bundles.sources import Source, open_source, read

ANSWER_SECONDS: Final = 30
"""Seconds that every server gets for its answer. This time is extended by the time that the bytes of the
answer take at `LEAST_RATE`, and by `TENSOR_SECONDS` for each tensor of a state.
"""
MOST_FAILURES: Final = 3
SLOW_SECONDS: Final = 10.0
"""A server that fails only after this many seconds is not asked again, because it delays others."""


class Holders:
    """The servers of one task. Each answer is read within `limits`. `remedy` is the advice in the error that
    is raised if no server gives a good answer.
    """

    def __init__(
        self, client: Client, view: TaskView, limits: Limits, remedy: str = "try again later"
    ) -> None:
        seats = client.audit.seats(view.task)
        accounts = dict.fromkeys([view.solver, *(seat.account for seat in seats if seat.attested)])
        self._task = view.task
        self._limits = limits
        self._remedy = remedy
        self._urls = [client.market.endpoint_of(account) for account in accounts if account != NOBODY]
        self._failures = Counter[str]()

    def bundles(self, bundle_hash: bytes) -> list[Address]:
        """Addresses where the holders may serve a bundle."""
        found = [parsed(url) for url in self._urls]
        return [address / f"bundles/{bundle_hash.hex()}" for address in found if address is not None]

    def state(self, number: int, root: bytes, program: StepProgram) -> dict[str, Tensor]:
        """The state of checkpoint `number`, checked against its root. Raises NotHeld if nobody serves it."""
        failures = []
        for url in self._asked():
            begun = time.monotonic()
            found = committed(url, self._task, number, program, root, self._limits)
            if not isinstance(found, str):
                types = zip(program.state_types, found, strict=True)
                if all(is_canonical(int(type_.dtype), data) for type_, data in types):
                    return program.state_of(found)
                found = "bytes with the root, but of no tensor: another NaN, or a bool that is not 0 or 1"
            self._failed(url, begun)
            failures.append(f"{parsed(url) or 'no http address'}: {found}")
        raise NotHeld(
            f"task {self._task}, checkpoint {number}",
            expected=f"a state with root {root.hex()} from its solver or an attested seat",
            got="; ".join(failures) or "none of them is asked any more",
            remedy=self._remedy,
        )

    def roots(self, root: bytes, size: int, segments: int) -> list[bytes]:
        """The first `size` state roots r_0, r_1, … of a task of `segments` segments. They are checked: the
        segment tree over them must have the root `root`. Raises NotHeld if nobody serves such roots.
        """
        most = (segments + 1) * HASH_BYTES  # a solver that is still training may have committed more by now
        for url in self._asked():
            begun = time.monotonic()
            try:
                with closing(_source(url, f"tasks/{self._task}", most, self._limits)) as source:
                    data = read(source, "segments", most)
            except (BadAddress, BundleError):
                self._failed(url, begun)
                continue
            found = [data[at : at + HASH_BYTES] for at in range(0, size * HASH_BYTES, HASH_BYTES)]
            if len(data) >= size * HASH_BYTES and segment_tree(found).root == root:
                return found
            self._failed(url, begun)
        raise NotHeld(
            f"task {self._task}",
            expected=f"state roots under {root.hex()} from its solver or an attested seat",
            got="none",
            remedy=self._remedy,
        )

    def _failed(self, url: str, begun: float) -> None:
        self._failures[url] += MOST_FAILURES if time.monotonic() - begun > SLOW_SECONDS else 1

    def _asked(self) -> Iterator[str]:
        for url in sorted(self._urls, key=lambda url: self._failures[url]):
            if self._failures[url] < MOST_FAILURES:
                yield url


def committed(
    url: str, task: int, number: int, program: StepProgram, root: bytes, limits: Limits
) -> list[bytes] | str:
    """The bytes of a checkpoint's tensors from one server, or the reason why its answer was rejected. The
    bytes match `root`, but they are not checked to be canonical.
    """
    try:
        data = _tensors(url, task, number, program, limits)
    except (BadAddress, BundleError) as error:
        return error.got if isinstance(error, BundleUnavailable) and error.got else str(error)
    found = state_root([tensor_root(item) for item in data])
    return data if found == root else f"a state with root {found.hex()}"


def _tensors(url: str, task: int, number: int, program: StepProgram, limits: Limits) -> list[bytes]:
    """The bytes of a checkpoint's tensors, each of its expected length. Raises BadAddress, BundleError."""
    sizes = [type_.nbytes for type_ in program.state_types]
    data: list[bytes] = []
    with closing(
        _source(url, f"tasks/{task}/checkpoints/{number}", sum(sizes), limits, len(sizes))
    ) as source:
        for group, numbers in enumerate(groups(sizes)):
            due = [sizes[k] for k in numbers]
            data += cut(_exactly(source, f"groups/{group}", sum(due)), due)
    return data


def _source(url: str, below: str, nbytes: int, limits: Limits, tensors: int = 0) -> Source:
    """A source of the files below the path `below` at a server's address. One time limit applies to all these
    files together. It allows for a total of `nbytes` bytes, and for `tensors` tensors that the server has to
    read.
    """
    due = ANSWER_SECONDS + math.ceil(nbytes / LEAST_RATE + tensors * TENSOR_SECONDS)
    seconds = min(limits.seconds, due)
    return open_source(Address.parse(url) / below, replace(limits, seconds=seconds))


def _exactly(source: Source, name: str, size: int) -> bytes:
    data = read(source, name, size)
    if len(data) != size:
        raise BundleMismatch(name, expected=f"{size} bytes", got=len(data))
    return data
