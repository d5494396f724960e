"""A small job, its oracle, and lanes of it as processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from eth_account.signers.local import LocalAccount
from safetensors.torch import load
from torch import Tensor, nn

from examples.demo.preloaded import Forked
from protocol.capture import CapturedStep, capture
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob, load_job, write_job
from protocol.exchange.lane import shelf_folder
from protocol.exchange.members import members_document
from protocol.exchange.shelf import announcement_name
from protocol.lanes import Job, Membership, Round
from protocol.node.http import free_port
from solver.lane import RESULT
from tests.adversaries.waiting import until
from tests.forked import start

WIDTH, STEPS, SEED = 3, 2, 7
Rows = Sequence[Sequence[str]]
Urls = Sequence[Sequence[str]]


def captured_step() -> CapturedStep:
    """A step of a small MLP, by AdamW."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4))
    data = {"x": torch.randn(40, 24), "y": torch.randn(40, 4)}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return capture(
        model,
        lambda m, b: (m(b["x"]) - b["y"]).square().mean(),
        optimizer,
        data,
        batch_size=8,
        steps=1_000,
    )


def written_job(folder: Path, rounds: int, width: int = WIDTH, density: str = "1/8") -> LaneJob:
    """The job, written to a folder and read again."""
    write_job(
        captured_step(),
        folder,
        name="small",
        width=width,
        density=Fraction(density),
        inner_steps=STEPS,
        rounds=rounds,
        seed=SEED,
    )
    return load_job(folder)


def account(lane: int) -> LocalAccount:
    """Of a lane."""
    return development_account(lane, DEVELOPMENT_CHAIN)


def members_file(path: Path, urls: Urls, rows: Rows | None = None, mirrors: Sequence[str] = ()) -> Path:
    """A file of members whose lanes have development accounts."""
    accounts = [account(lane).address for lane in range(len(urls))]
    path.write_text(json.dumps(members_document(accounts, urls, mirrors, rows)))
    return path


def oracle(job: LaneJob, rows: Rows) -> tuple[list[Round], Mapping[str, Tensor]]:
    """All rounds of the whole job in one process, and its result."""
    run = Job(job.lanes, job.seeds, Membership.of(rows))
    rounds = list(run.rounds())
    return rounds, run.result(rounds[-1])


@dataclass
class Lanes:
    """Lanes of one job, each a process with a home folder and a port of its own. Ended with the context."""

    folder: Path
    job: LaneJob
    rows: Rows
    urls: list[str] = field(init=False)
    running: dict[int, Forked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ports = [free_port("127.0.0.1") for _ in range(self.job.lanes.width)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def start(
        self,
        lane: int,
        members: Path,
        *arguments: str,
        before: Sequence[Callable[[], None]] = (),
    ) -> Forked:
        """Start a lane, or start it again."""
        process = start(
            "solver.cli",
            *("lane", str(self.folder / "job"), "--number", str(lane), "--dev-account", str(lane)),
            *("--port", str(self.ports[lane]), "--members", str(members), "--home", str(self._home(lane))),
            *arguments,
            log=self.log(lane),
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
        """Start a lane, and wait until it ends or, if `finished` counts, has the result: whether it ended."""
        process, result = self.start(lane, members, *arguments, before=before), self.kept(lane) / RESULT
        until(f"lane {lane}", lambda: process.poll() is not None or (finished and result.exists()))
        return process.poll() is not None

    def log(self, lane: int) -> Path:
        """What a lane has written."""
        return self.folder / f"lane{lane}.log"

    def kept(self, lane: int) -> Path:
        """A lane's folder."""
        return shelf_folder(self._home(lane), self.job, lane)

    def announced(self, number: int, lane: int) -> Announcement:
        """What a lane has announced of a round."""
        return Announcement.parse((self.kept(lane) / announcement_name(number, lane)).read_bytes())

    def has_announced(self, number: int, lane: int) -> bool:
        """Whether it has."""
        return (self.kept(lane) / announcement_name(number, lane)).exists()

    def until_finished(self, lanes: Sequence[int]) -> None:
        """Wait until lanes have the result. Raises `AssertionError` if one ends before."""
        until(f"lanes {lanes} have finished", lambda: all(map(self._has_finished, lanes)))

    def require_oracles_bits(self, of: Collection[int] = range(16)) -> None:
        """Every state of these lanes, where they were there, and their results' parameters, are the oracle's."""
        rounds, result = oracle(self.job, self.rows)
        for done in rounds:
            for lane, state in enumerate(done.states):
                if lane not in of:
                    continue
                if state is None:
                    assert not self.has_announced(done.number, lane)
                    continue
                assert self.announced(done.number, lane).roots == self.job.lanes.inner.tensor_roots(state), (
                    f"lane {lane} in round {done.number}"
                )
        for lane, state in enumerate(rounds[-1].states):
            if state is not None and lane in of:
                found = load((self.kept(lane) / RESULT).read_bytes())
                for name in self.job.lanes.parameters:
                    assert torch.equal(found[name], result[name]), name

    def _has_finished(self, lane: int) -> bool:
        code = self.running[lane].poll()
        assert code is None, f"lane {lane} ended with {code}:\n{self.log(lane).read_text()}"
        return (self.kept(lane) / RESULT).exists()

    def _home(self, lane: int) -> Path:
        return self.folder / f"home{lane}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(30)
