"""Runs a job's lanes as `solver lane` processes on this machine, each with its own home folder and port."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from eth_account.signers.local import LocalAccount
from torch import Tensor

from examples.demo.preloaded import Forked
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob
from protocol.exchange.lane import shelf_folder
from protocol.exchange.members import members_document
from protocol.exchange.shelf import announcement_name
from protocol.lanes.splitting import Inbox
from protocol.lanes.splitting import Lanes as Split
from protocol.node.http import hold_port
from protocol.program.execute import Interpreter
from protocol.program.step import State
from solver.lane import RESULT
from tests.adversaries.waiting import until
from tests.forked import start

Rows = Sequence[Sequence[str]]
Urls = Sequence[Sequence[str]]


def account(lane: int) -> LocalAccount:
    """The development account of a lane."""
    return development_account(lane, DEVELOPMENT_CHAIN)


def members_file(
    path: Path, urls: Urls, rows: Rows | None = None, mirrors: Sequence[str] = (), run: int = 0
) -> Path:
    """Write a members file in which the lanes have development accounts."""
    accounts = [account(lane).address for lane in range(len(urls))]
    path.write_text(json.dumps(members_document(accounts, urls, mirrors, rows, run)))
    return path


def four_times_slower() -> None:
    """Slow down a lane by training every round four times. The lane's process calls this."""
    once = Split.train

    def train(self: Split, state: State, inbox: Inbox, interpreter: Interpreter) -> dict[str, Tensor]:
        for _ in range(3):
            once(self, state, inbox, interpreter)
        return once(self, state, inbox, interpreter)

    Split.train = train  # type: ignore[method-assign]


def free_ports(host: str, count: int) -> list[int]:
    """Different ports of `host`, an IPv4 host, on which nobody listens now. All are held until all are
    chosen.
    """
    with ExitStack() as stack:
        held = [stack.enter_context(hold_port(host)) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in held]


@dataclass
class Processes:
    """The lanes of the job in the folder `folder`/job. Leaving the context kills the lanes."""

    folder: Path
    job: LaneJob
    urls: list[str] = field(init=False)
    running: dict[int, Forked] = field(default_factory=dict, init=False)
    run: int = field(default=0, kw_only=True)
    """The number of the job's run. The members files name it, and the folders of shelves have it in their names."""

    def __post_init__(self) -> None:
        self.ports = free_ports("127.0.0.1", self.job.lanes.width)
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def start(
        self,
        lane: int,
        members: Path,
        *arguments: str,
        before: Sequence[Callable[[], None]] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Forked:
        """Start a lane, for the first time or again."""
        process = start(
            "solver.cli",
            *("lane", str(self.folder / "job"), "--number", str(lane), "--dev-account", str(lane)),
            *("--port", str(self.ports[lane]), "--members", str(members), "--home", str(self.home(lane))),
            *arguments,
            log=self.log(lane),
            environment=environment,
            before=before,
        )
        self.running[lane] = process
        return process

    def ends(
        self,
        lane: int,
        members: Path,
        *arguments: str,
        before: Sequence[Callable[[], None]] = (),
        finished: bool = True,
    ) -> bool:
        """Start a lane and wait until it has ended. With `finished`, also stop waiting when the lane has
        logged that it has the result. The file of the result is not enough: a lane that is killed before it
        logs may have written it. Return whether the lane has ended.
        """
        log, result = self.log(lane), str(self.kept(lane) / RESULT).encode()
        earlier = log.stat().st_size if log.exists() else 0
        process = self.start(lane, members, *arguments, before=before)

        def has_finished() -> bool:
            return result in log.read_bytes()[earlier:]

        until(f"lane {lane}", lambda: process.poll() is not None or (finished and has_finished()))
        return process.poll() is not None

    def home(self, lane: int) -> Path:
        """A lane's home folder."""
        return self.folder / f"home{lane}"

    def log(self, lane: int) -> Path:
        """The log file of a lane."""
        return self.folder / f"lane{lane}.log"

    def kept(self, lane: int) -> Path:
        """The folder of a lane's shelf."""
        return shelf_folder(self.home(lane), self.job, self.run, lane)

    def announced(self, number: int, lane: int) -> Announcement:
        """A lane's announcement of a round."""
        return Announcement.parse((self.kept(lane) / announcement_name(number, lane)).read_bytes())

    def has_announced(self, number: int, lane: int) -> bool:
        """Whether a lane has announced a round."""
        return (self.kept(lane) / announcement_name(number, lane)).exists()

    def until_announced(self, number: int, lanes: Sequence[int]) -> None:
        """Wait until lanes have announced and logged a round. Raises `AssertionError` if a lane ends before
        that, or if the wait takes longer than `tests.adversaries.waiting.PATIENCE`.
        """
        said = f'"round": {number},'

        def announced(lane: int) -> bool:
            self._require_running(lane)
            return any(said in line and '"trained"' in line for line in self.log(lane).open())

        until(f"lanes {lanes} have trained round {number}", lambda: all(map(announced, lanes)))

    def until_logged(self, said: str, lanes: Sequence[int]) -> None:
        """Wait until lanes have logged `said`. Raises `AssertionError` as `until_announced` does."""

        def logged(lane: int) -> bool:
            self._require_running(lane)
            return said in self.log(lane).read_text()

        until(f"lanes {lanes} have logged {said!r}", lambda: all(map(logged, lanes)))

    def until_finished(self, lanes: Sequence[int]) -> None:
        """Wait until lanes have the result. Raises `AssertionError` as `until_announced` does."""
        until(f"lanes {lanes} have finished", lambda: all(map(self._has_finished, lanes)))

    def _require_running(self, lane: int) -> None:
        code = self.running[lane].poll()
        assert code is None, f"lane {lane} ended with {code}:\n{self.log(lane).read_text()}"

    def _has_finished(self, lane: int) -> bool:
        self._require_running(lane)
        return (self.kept(lane) / RESULT).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(30)
