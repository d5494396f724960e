"""What a soak plays, and what its tasks ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from examples.demo.tasks import PERIODS
from protocol.chain.parameters import TOKEN

SUBMITTER, SOLVER, CHEAT, FIRST_VERIFIER = range(4)
"""Indices of development accounts. The submitter has deployed the contracts too."""
SEGMENTS: Final = 4
STAKE: Final = 200
"""Tokens that a solver has at stake in a task."""
VERIFIER_STAKE: Final = 20
"""Two of the deployment's units: they cover a seat's lock."""
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
"""Three seats, half of which are looked at. Of the periods none is waited for."""


@dataclass(frozen=True)
class Plan:
    """`tasks` by one honest solver, `window` of them at a time; every `cheat_every`th is trained by a cheat instead,
    which is found out in a game. `processes` verifiers have `accounts` each. Before the first task and after the last
    one the parties are left alone for `idle_blocks`.
    """

    tasks: int = 100
    processes: int = 5
    accounts: int = 10
    cheat_every: int = 10
    window: int = 3
    idle_blocks: int = 30

    def is_false(self, task: int) -> bool:
        """Whether a cheat trains it: the first after half of `cheat_every`."""
        return task % self.cheat_every == self.cheat_every // 2

    @property
    def honest(self) -> list[int]:
        """The honest solver's tasks."""
        return [task for task in range(1, self.tasks + 1) if not self.is_false(task)]

    @property
    def verifiers(self) -> dict[str, range]:
        """Accounts by the name of their process."""
        first = FIRST_VERIFIER
        return {
            f"verifier-{number + 1}": range(
                first + number * self.accounts, first + (number + 1) * self.accounts
            )
            for number in range(self.processes)
        }

    @property
    def parties(self) -> list[str]:
        """Names of the processes that are measured."""
        return ["solver", *self.verifiers]

    def data(self) -> dict[str, int]:
        """For a file."""
        return asdict(self)
