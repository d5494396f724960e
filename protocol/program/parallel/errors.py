"""Errors of several processes that run one step together. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.program.errors import ProgramError


class ParallelError(ProgramError):
    """Several processes cannot run this step, or cannot continue it."""


class TooManyProcesses(ParallelError):
    """More processes than the program has units."""

    def __init__(self, units: int, processes: int) -> None:
        remedy = f"start at most {units}, or capture the step with more micro_batches"
        super().__init__(
            f"at most {units} processes, one for each unit of the step", str(processes), remedy=remedy
        )


class PartnerLost(ParallelError):
    """Another process has ended, or the connection to it is lost."""

    def __init__(self, rank: int, size: int, reason: object) -> None:
        got = " ".join(str(reason).split())
        super().__init__(
            f"an answer from all {size} processes at process {rank}",
            got,
            remedy="look for the one that ended, then go on from the last checkpoint",
        )


class RanksDisagree(ParallelError):
    """State roots differ between processes: a device computed a wrong bit."""

    def __init__(self, roots: Sequence[bytes]) -> None:
        self.roots = tuple(roots)
        found = ", ".join(f"{rank}: {root.hex()[:16]}…" for rank, root in enumerate(roots))
        super().__init__(
            "one state root in all processes",
            found,
            remedy="commit none of them, run `make test` on each device, and go on from the last checkpoint",
        )
