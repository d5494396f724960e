"""The plan of a soak and the terms of its tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from examples.demo.tasks import PERIODS
from protocol.chain.parameters import TOKEN

SUBMITTER, SOLVER, CHEAT, FIRST_VERIFIER = range(4)
"""Indices of development accounts. The submitter also deploys the contracts."""
SEGMENTS: Final = 4
STAKE: Final = 200
"""Tokens that a solver stakes in a task."""
VERIFIER_STAKE: Final = 20
"""Tokens that a verifier stakes: two of the deployment's units, which cover a seat's lock."""
TERMS: Final[dict[str, Any]] = {
    **PERIODS,
    "segments": SEGMENTS,
    "segment_steps": 2,
    "thinning": 1,
    "budget": 20 * TOKEN,
    "stake": STAKE * TOKEN,
    "restitution": 10 * TOKEN,
    "reward": 10 * TOKEN,
    "retrain_reward": 20 * TOKEN,
    "audit_fee": TOKEN,
    "game_cost": 3 * TOKEN,
    "delay_penalty": 2 * TOKEN,
    "replay_allowance": 0,
    "verifiers": 3,
    "segments_per_verifier": 1,
    "look_chance": 5_000,
    "jurors": 0,
    "seat_lock": 15 * TOKEN,
    "bond": 20 * TOKEN,
}
"""Terms with three seats, and a look chance of one half. Their periods need no waiting, because the clock is
moved.
"""


@dataclass(frozen=True)
class Plan:
    """A plan of `tasks` tasks, at most `window` at a time.

    Of every `cheat_every` tasks, a cheat trains one and is caught in a game. One honest solver trains all
    other tasks. Each of the `processes` verifier processes has `accounts` accounts. Before the first task and
    after the last one, the parties are idle for `idle_blocks` blocks.
    """

    tasks: int = 100
    processes: int = 5
    accounts: int = 10
    cheat_every: int = 10
    window: int = 3
    idle_blocks: int = 30

    def is_false(self, task: int) -> bool:
        """Whether a cheat trains this task. Of each `cheat_every` tasks, a cheat trains the middle one."""
        return task % self.cheat_every == self.cheat_every // 2

    @property
    def honest(self) -> list[int]:
        """The honest solver's tasks."""
        return [task for task in range(1, self.tasks + 1) if not self.is_false(task)]

    @property
    def verifiers(self) -> dict[str, range]:
        """Account indices by process name."""
        first = FIRST_VERIFIER
        return {
            f"verifier-{number + 1}": range(
                first + number * self.accounts, first + (number + 1) * self.accounts
            )
            for number in range(self.processes)
        }

    @property
    def parties(self) -> list[str]:
        """Names of the measured processes."""
        return ["solver", *self.verifiers]

    def data(self) -> dict[str, int]:
        """The plan as a dictionary, for a file."""
        return asdict(self)
