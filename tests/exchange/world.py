"""A small job, its oracle, and its lanes as processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import torch
from safetensors.torch import load
from torch import Tensor, nn

from benchmarks.lanes.processes import Processes, Rows, account
from protocol.capture import CapturedStep, capture
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob, load_job, write_job
from protocol.exchange.shelf import Shelf
from protocol.lanes import Job, Membership, Round
from protocol.lanes.splitting import VALUE
from protocol.numerics.types import to_bytes
from protocol.program.step import State
from solver.lane import RESULT

WIDTH, STEPS, SEED = 3, 2, 7


def captured_step() -> CapturedStep:
    """A step of a small MLP with AdamW."""
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


def oracle(job: LaneJob, rows: Rows) -> tuple[list[Round], Mapping[str, Tensor]]:
    """All rounds of the whole job in one process, and its result."""
    run = Job(job.lanes, job.seeds, Membership.of(rows))
    rounds = list(run.rounds())
    return rounds, run.result(rounds[-1])


def announced(job: LaneJob, lane: int, state: State, number: int = 0) -> Announcement:
    """The announcement of a lane's state, signed by the lane's account."""
    return Announcement.signed(account(lane), job.id, 0, number, lane, job.lanes.inner.tensor_roots(state))


def put(job: LaneJob, shelf: Shelf, state: State) -> None:
    """Put a state's tensors on a shelf."""
    step = job.lanes.inner
    for root, x, type_ in zip(step.tensor_roots(state), step.order(state), step.state_types, strict=True):
        shelf.put(root, to_bytes(x, type_.dtype))


def fill(job: LaneJob, shelf: Shelf, lane: int, state: State, number: int = 0) -> None:
    """Put a state of a lane and its announcement on a shelf."""
    put(job, shelf, state)
    shelf.announce(announced(job, lane, state, number))


def other_message(state: State) -> dict[str, Tensor]:
    """A copy of `state` with a different message, which `emit` could make too."""
    value = (state[VALUE].to(torch.int32) + 64).to(torch.uint8)
    return {**state, VALUE: value}


@dataclass
class Lanes(Processes):
    """Lanes of one job as processes; `rows` say which lane counts in which round."""

    rows: Rows

    def require_oracles_bits(self, of: Collection[int] = range(16)) -> None:
        """Assert for each lane in `of`: it has announced the oracle's state for each round in which it takes
        part, and nothing for every other round. If it takes part in the last round, it has the oracle's
        result.
        """
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
