"""What the contracts return, as values: one dataclass per struct, fields in ABI order, enums and addresses
typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from eth_utils.address import to_checksum_address

from protocol.dispute.view import Phase, Verdict

NOBODY = "0x" + "00" * 20
"""The zero address: no solver yet."""


class TaskStatus(IntEnum):
    """Where a task stands (ITaskMarket.Status)."""

    NONE = 0
    BIDDING = 1
    TRAINING = 2
    SUBMITTED = 3
    SETTLED = 4
    REFUNDED = 5
    VOID = 6
    SLASHED = 7

    @property
    def is_over(self) -> bool:
        """Whether nothing more can happen to the task."""
        return self >= TaskStatus.SETTLED


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task's moving parts (ITaskMarket.Task). Times are seconds since 1970; escrow and stake are lock
    numbers. `bidder` made the best bid; bids have moved
    the end of bidding by `overtime` seconds.
    """

    task: int
    submitter: str
    escrow: int
    stake: int
    bidder: str
    status: TaskStatus
    size: int
    open_games: int
    bids_until: int
    train_until: int
    challenge_until: int
    draw_block: int
    price: int
    overtime: int
    root: bytes
    result: bytes

    @classmethod
    def from_abi(cls, task: int, values: tuple[Any, ...]) -> TaskView:
        """From what `taskOf(task)` returned."""
        submitter, escrow, stake, bidder, status, *rest = values
        parties = to_checksum_address(submitter), to_checksum_address(bidder)
        return cls(task, parties[0], escrow, stake, parties[1], TaskStatus(status), *rest)

    @property
    def solver(self) -> str:
        """The best bidder once bidding is over, NOBODY before."""
        return NOBODY if self.status <= TaskStatus.BIDDING else self.bidder


@dataclass(frozen=True, slots=True)
class Duty:
    """Duty number `number` of a task: this verifier is to replay this segment (IAuditBoard.Duty)."""

    number: int
    verifier: str
    segment: int
    attested: bool


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of the vault; `until` is 0 while it is not unbonding."""

    owner: str
    module: str
    remaining: int
    until: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Lock:
        """From what `lockOf` returned."""
        owner, module, remaining, until = values
        return cls(to_checksum_address(owner), to_checksum_address(module), remaining, until)


NEVER: Final = (1 << 64) - 1
"""The deadline of a game that waits."""


@dataclass(frozen=True, slots=True)
class GameState:
    """A game as the contract keeps it (IDisputeGame.Game); `game_view` adds what the events tell. Times are seconds."""

    game: int
    task: int
    challenger: str
    phase: Phase
    verdict: Verdict
    depth: int
    demands: int
    demand_open: int
    segment: int
    step: int
    segment_size: int
    deadline: int
    solver_spent: int
    challenger_spent: int
    segment_root: bytes
    claim: bytes
    program: bytes
    head: bytes
    demand_hash: bytes
    selection: bytes
    bond: int

    @classmethod
    def from_abi(cls, game: int, values: tuple[Any, ...]) -> GameState:
        """From what `gameOf(game)` returned."""
        task, challenger, phase, verdict, *rest = values
        return cls(game, task, to_checksum_address(challenger), Phase(phase), Verdict(verdict), *rest)

    @property
    def waits(self) -> bool:
        """Whether it waits until a game before it is dismissed: no clock runs, and the challenger cannot move."""
        return self.deadline == NEVER


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a task (IDisputeGame.Claim). `posted_at` is 0 until the solver posts it."""

    root: bytes
    program: bytes
    context: bytes
    size: int
    posted_at: int
    task: int

    def posted(self, game: GameState) -> bytes | None:
        """The root as a game has it; None while it is due, and if it came after the solver's last second there."""
        late = self.posted_at > game.deadline and game.phase is not Phase.CLOSED
        return self.root if self.posted_at and not late else None
